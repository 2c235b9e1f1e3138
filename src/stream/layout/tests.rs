use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// (frame, token)
type Token = (usize, usize);

/// The rule itself: frames in order of storage, each with the tokens that are left of it.
struct ListModel {
    rules: CacheRules,
    frames: Vec<(usize, Vec<Token>)>,
    stored: usize,
}

impl ListModel {
    fn new(rules: CacheRules) -> Self {
        Self {
            rules,
            frames: Vec::new(),
            stored: 0,
        }
    }

    fn frame(&self, id: usize) -> Vec<Token> {
        (0..self.rules.frame_tokens)
            .map(|token| (id, token))
            .collect()
    }

    fn store(&mut self, id: usize) {
        self.frames.push((self.stored, self.frame(id)));
        self.stored += 1;
        if self.stored <= self.rules.full_frames() {
            return;
        }
        if !self.rules.keep_scale_frames {
            self.frames
                .retain(|(place, _)| *place >= self.rules.scale_frames);
        }
        let kept = if self.rules.keep_specials {
            self.rules.special_tokens
        } else {
            0
        };
        let evicted = self.stored - 1 - self.rules.window;
        for (place, tokens) in &mut self.frames {
            if *place == evicted {
                tokens.truncate(kept);
            }
        }
    }

    fn kept(&self) -> BTreeSet<Token> {
        let tokens = self.frames.iter().flat_map(|(_, tokens)| tokens);
        tokens.copied().collect()
    }
}

/// A cache of row names, driven by plans alone.
#[derive(Default)]
struct Rows(Vec<Option<Token>>);

impl Rows {
    fn apply(&mut self, moves: &[RowMove]) {
        for change in moves {
            let (a, b, rows) = match *change {
                RowMove::Copy { from, to, rows } => (from, to, rows),
                RowMove::Exchange { a, b, rows } => (a, b, rows),
            };
            if self.0.len() < a.max(b) + rows {
                self.0.resize(a.max(b) + rows, None);
            }
            match change {
                RowMove::Copy { .. } => self.0.copy_within(a..a + rows, b),
                RowMove::Exchange { .. } => {
                    assert!(a.abs_diff(b) >= rows, "exchanged rows overlap");
                    (0..rows).for_each(|row| self.0.swap(a + row, b + row));
                }
            }
        }
    }

    fn write(&mut self, row: usize, tokens: &[Token]) {
        if self.0.len() < row + tokens.len() {
            self.0.resize(row + tokens.len(), None);
        }
        for (row, token) in self.0[row..].iter_mut().zip(tokens) {
            *row = Some(*token);
        }
    }

    fn first(&self, rows: usize) -> BTreeSet<Token> {
        let tokens: Vec<Token> = self.0[..rows]
            .iter()
            .map(|row| row.expect("an attended row was never written"))
            .collect();
        let set: BTreeSet<Token> = tokens.iter().copied().collect();
        assert_eq!(set.len(), tokens.len(), "a token is attended twice");
        set
    }

    fn run(&mut self, plan: &StepPlan, tokens: &[Token]) -> BTreeSet<Token> {
        self.apply(&plan.moves);
        self.write(plan.write, tokens);
        self.first(plan.attended)
    }
}

fn rules() -> impl Strategy<Value = CacheRules> {
    let switch = || prop::bool::weighted(0.7);
    (
        1usize..5,
        1usize..7,
        1usize..6,
        1usize..7,
        switch(),
        switch(),
    )
        .prop_map(
            |(patches, special_tokens, scale_frames, window, keep_specials, keep_scale_frames)| {
                CacheRules {
                    frame_tokens: patches + special_tokens,
                    special_tokens,
                    scale_frames,
                    window,
                    keep_specials,
                    keep_scale_frames,
                    history: None,
                }
            },
        )
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Keyframe,
    Other,
    /// Runs unstored and is stored afterwards.
    Promoted,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        4 => Just(Fate::Keyframe),
        2 => Just(Fate::Other),
        2 => Just(Fate::Promoted),
    ];
    prop::collection::vec(fate, 0..1000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn attends_exactly_what_append_and_evict_would(rules in rules(), first in 1usize..9, fates in fates()) {
        let mut model = ListModel::new(rules);
        let mut layout = CacheLayout::new(rules);
        let mut rows = Rows::default();

        let first = first.min(rules.full_frames());
        let plan = layout.plan_scale(first);
        let tokens: Vec<Token> = (0..first).flat_map(|id| model.frame(id)).collect();
        (0..first).for_each(|id| model.store(id));
        prop_assert_eq!(rows.run(&plan, &tokens), model.kept());
        layout.commit(&plan);

        for (step, fate) in fates.into_iter().enumerate() {
            let id = first + step;
            let (role, stores) = match fate {
                Fate::Keyframe => (FrameRole::Keyframe, true),
                Fate::Other => (FrameRole::Other, false),
                Fate::Promoted => (FrameRole::Other, true),
            };
            let plan = layout.plan_step(role);
            if role == FrameRole::Keyframe {
                model.store(id);
            }
            let mut expected = model.kept();
            expected.extend(model.frame(id));
            prop_assert_eq!(rows.run(&plan, &model.frame(id)), expected);
            let room = rules.capacity_for(layout.next_history());
            prop_assert!(plan.attended <= room);
            layout.commit(&plan);
            if stores && role == FrameRole::Other {
                model.store(id);
                let plan = layout.plan_promotion();
                rows.apply(&plan.moves);
                prop_assert_eq!(rows.first(plan.attended), model.kept());
                let place = rows.0[plan.write..][..rules.frame_tokens].to_vec();
                prop_assert_eq!(place, model.frame(id).into_iter().map(Some).collect::<Vec<_>>());
                layout.commit(&plan);
            }
            prop_assert_eq!(layout.valid(), model.kept().len());
            prop_assert!(rows.0.len() <= room);
        }
    }

    /// A limit takes tokens of evicted frames only, and only when it bites.
    #[test]
    fn a_limited_history_is_a_part_of_the_whole(rules in rules(), limit in 0usize..60, fates in fates()) {
        let limited = CacheRules { history: Some(limit), ..rules };
        let mut model = ListModel::new(rules);
        let mut layout = CacheLayout::new(limited);
        let mut rows = Rows::default();
        let plan = layout.plan_scale(1);
        model.store(0);
        rows.run(&plan, &model.frame(0));
        layout.commit(&plan);
        let mut bitten = limited.kept_specials() == 0;
        for (step, fate) in fates.into_iter().enumerate() {
            let id = step + 1;
            let role = if matches!(fate, Fate::Keyframe) { FrameRole::Keyframe } else { FrameRole::Other };
            let plan = layout.plan_step(role);
            let mut seen = rows.run(&plan, &model.frame(id));
            layout.commit(&plan);
            if matches!(fate, Fate::Promoted) {
                let plan = layout.plan_promotion();
                rows.apply(&plan.moves);
                layout.commit(&plan);
                seen = rows.first(layout.valid());
            }
            let stores = !matches!(fate, Fate::Other);
            if stores {
                model.store(id);
            }
            let mut all = model.kept();
            if !stores {
                all.extend(model.frame(id));
            }
            let specials = model.frames.iter().map(|(_, tokens)| tokens.len());
            let specials: usize = specials.filter(|&len| len < rules.frame_tokens).sum();
            bitten |= specials > limit;
            prop_assert!(seen.is_subset(&all));
            prop_assert!(bitten || seen == all);
            prop_assert!(layout.history() <= limit);
            prop_assert!(rows.0.len() <= limited.capacity_for(limit));
            // Frames in full are never thinned.
            for (_, tokens) in model.frames.iter().filter(|(_, tokens)| tokens.len() == rules.frame_tokens) {
                prop_assert!(tokens.iter().all(|token| seen.contains(token)));
            }
        }
    }
}
