"""GCTStream in PyTorch, small and trainable, under the official tensor names.

Only what training needs: every frame of a sequence runs at once, and two biases per pair of frames say what a frame
may attend to, so that the sequence sees what a stream with a cache would show it.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

PATCH = 14
SPECIAL = 6  # camera, four registers, scale: the tokens that an evicted frame leaves behind
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def config(channels=128, encoder_depth=3, depth=4, camera_depth=4, height=84, width=112):
    """Sizes of the demo network, as its config.json holds them."""
    return dict(
        img_size=max(height, width), embed_dim=channels, heads=channels // 64, fhw=[20, 22, 22],
        dino_depth=encoder_depth, dino_heads=channels // 64, depth=depth,
        selected=[depth - 4, depth - 3, depth - 2, depth - 1],
        cam_depth=camera_depth, cam_heads=channels // 32, cam_iters=4, dpt_features=32, dpt_out=[32, 32, 64, 64],
        window=8, scale_frames=4, enable_point=False,
        demo=dict(input_h=height, input_w=width, num_scale_frames=4, keyframe_interval=1, metres_per_unit=1.0),
    )


def fields_of_view(height, width):
    """Of the training's camera, vertical and horizontal, radians."""
    return 2 * math.atan(math.tan(math.radians(37.5)) * height / width), math.radians(75)


class Attention(nn.Module):
    def __init__(self, dim, heads, qk_norm):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        if qk_norm:
            self.q_norm = nn.LayerNorm(dim // heads, eps=1e-5)
            self.k_norm = nn.LayerNorm(dim // heads, eps=1e-5)

    def forward(self, x, rotate=None, bias=None):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        if rotate is not None:
            q, k = rotate(q), rotate(k)
        x = F.scaled_dot_product_attention(q, k, v.contiguous(), attn_mask=bias)
        return self.proj(x.transpose(1, 2).reshape(batch, tokens, dim))


class LayerScale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), 0.5))


class Mlp(nn.Module):
    def __init__(self, dim, hidden, out):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, out)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, dim, heads, eps, qk_norm=False):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=eps)
        self.attn = Attention(dim, heads, qk_norm)
        self.ls1 = LayerScale(dim)
        self.norm2 = nn.LayerNorm(dim, eps=eps)
        self.mlp = Mlp(dim, 4 * dim, dim)
        self.ls2 = LayerScale(dim)

    def forward(self, x, rotate=None, bias=None):
        x = x + self.ls1.gamma * self.attn(self.norm1(x), rotate, bias)
        return x + self.ls2.gamma * self.mlp(self.norm2(x))


def rotate_halves(angles):
    """RoPE 2D: within each half of the head, pair (j, j + n/2). `angles` [tokens, 2, n/2]."""
    cos, sin = angles.cos(), angles.sin()

    def rotate(x):
        a, b = x.unflatten(-1, (2, 2, -1)).unbind(-2)
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -2).flatten(-3)

    return rotate


def rotate_pairs(angles):
    """RoPE 3D: adjacent pairs. `angles` [batch, 1, tokens, d/2]."""
    cos, sin = angles.cos(), angles.sin()

    def rotate(x):
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    return rotate


class PatchEmbed(nn.Module):
    """The encoder: DINOv2 with registers."""

    def __init__(self, c):
        super().__init__()
        dim, grid = c["embed_dim"], c["img_size"] // PATCH
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(3, dim, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.2)
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + grid * grid, dim) * 0.2)
        self.register_tokens = nn.Parameter(torch.randn(1, 4, dim) * 0.2)
        self.mask_token = nn.Parameter(torch.zeros(1, dim), requires_grad=False)
        self.blocks = nn.ModuleList(Block(dim, c["dino_heads"], 1e-6) for _ in range(c["dino_depth"]))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.grid = grid

    def positions(self, rows, columns):
        cls, table = self.pos_embed[:, :1], self.pos_embed[:, 1:]
        table = table.transpose(1, 2).unflatten(2, (self.grid, self.grid))
        if (rows, columns) != (self.grid, self.grid):
            table = F.interpolate(table, (rows, columns), mode="bicubic", antialias=True, align_corners=False)
        return cls, table.flatten(2).transpose(1, 2)

    def forward(self, images):
        x = self.patch_embed.proj(images)
        cls, table = self.positions(*x.shape[-2:])
        x = x.flatten(2).transpose(1, 2) + table
        n = x.shape[0]
        x = torch.cat(((self.cls_token + cls).expand(n, -1, -1), self.register_tokens.expand(n, -1, -1), x), 1)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, 5:]


class Aggregator(nn.Module):
    def __init__(self, c):
        super().__init__()
        dim, heads = c["embed_dim"], c["heads"]
        self.patch_embed = PatchEmbed(c)
        self.camera_token = nn.Parameter(torch.randn(1, 2, 1, dim) * 0.2)
        self.register_token = nn.Parameter(torch.randn(1, 2, 4, dim) * 0.2)
        self.scale_token = nn.Parameter(torch.randn(1, 2, 1, dim) * 0.2)
        self.frame_blocks = nn.ModuleList(Block(dim, heads, 1e-5, True) for _ in range(c["depth"]))
        self.global_blocks = nn.ModuleList(Block(dim, heads, 1e-5, True) for _ in range(c["depth"]))
        rows, columns = c["demo"]["input_h"] // PATCH, c["demo"]["input_w"] // PATCH
        grid = torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"), -1).view(-1, 2)
        n = 64 // 4
        base = 100.0 ** (-2 * torch.arange(n, dtype=torch.float64) / (2 * n))
        place = torch.cat((torch.zeros(SPECIAL, 2), grid + 1)).double()
        self.register_buffer("frame_angles", (place[:, :, None] * base).float(), persistent=False)
        special = torch.arange(SPECIAL)[:, None].expand(-1, 2)
        place = torch.cat((special, grid + SPECIAL)).double()
        parts = [10000.0 ** (-2 * torch.arange(k // 2, dtype=torch.float64) / k) for k in c["fhw"]]
        still = torch.cat((place[:, :1] * parts[1], place[:, 1:] * parts[2]), 1)
        self.register_buffer("still_angles", still.float(), persistent=False)
        self.register_buffer("time_base", parts[0], persistent=False)

    def forward(self, images, time, bias, scale_frames):
        """images [B, F, 3, H, W] normalised, time [B, F], bias [B, 1, F*P, F*P]; a list of [B, F, P, 2C]."""
        batch, frames = images.shape[:2]
        patches = self.patch_embed(images.flatten(0, 1)).unflatten(0, (batch, frames))
        first = [0] + [1] * (frames - 1)
        scale = [0] * scale_frames + [1] * (frames - scale_frames)
        special = torch.cat((self.camera_token[0, first], self.register_token[0, first], self.scale_token[0, scale]), 1)
        x = torch.cat((special.expand(batch, -1, -1, -1), patches), 2)
        tokens = x.shape[2]
        of_time = (time.double()[..., None] * self.time_base).float()[:, :, None].expand(-1, -1, tokens, -1)
        angles = torch.cat((of_time, self.still_angles.expand(batch, frames, -1, -1)), -1).flatten(1, 2)
        in_frame, in_stream = rotate_halves(self.frame_angles), rotate_pairs(angles[:, None])
        levels = []
        for frame_block, global_block in zip(self.frame_blocks, self.global_blocks):
            x = frame_block(x.flatten(0, 1), in_frame)
            within = x.unflatten(0, (batch, frames))
            x = global_block(within.flatten(1, 2), in_stream, bias).unflatten(1, (frames, tokens))
            levels.append(torch.cat((within, x), -1))
        return levels


class CameraHead(nn.Module):
    def __init__(self, c):
        super().__init__()
        dim = 2 * c["embed_dim"]
        self.iterations = c["cam_iters"]
        self.token_norm = nn.LayerNorm(dim, eps=1e-5)
        self.trunk_norm = nn.LayerNorm(dim, eps=1e-5)
        self.trunk = nn.ModuleList(Block(dim, c["cam_heads"], 1e-5) for _ in range(c["cam_depth"]))
        self.empty_pose_tokens = nn.Parameter(torch.zeros(1, 1, 9))
        self.embed_pose = nn.Linear(9, dim)
        self.poseLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(dim, 3 * dim))
        self.pose_branch = Mlp(dim, dim // 2, 9)
        with torch.no_grad():
            fields = fields_of_view(c["demo"]["input_h"], c["demo"]["input_w"])
            plausible = torch.tensor([0, 0, 0, 0, 0, 0, 1, *fields])
            self.pose_branch.fc2.weight.mul_(0.1)
            self.pose_branch.fc2.bias.copy_(plausible / self.iterations)

    def forward(self, x, bias):
        """x [B, F, 2C], bias [B, 1, F, F]; the pose encodings after each iteration."""
        x = self.token_norm(x)
        still = F.layer_norm(x, x.shape[-1:], eps=1e-6)
        raw, answers = None, []
        for _ in range(self.iterations):
            before = self.empty_pose_tokens.expand(*x.shape[:2], -1) if raw is None else raw.detach()
            shift, scale, gate = self.poseLN_modulation(self.embed_pose(before)).chunk(3, -1)
            y = gate * (still * (1 + scale) + shift) + x
            for block in self.trunk:
                y = block(y, None, bias)
            delta = self.pose_branch(self.trunk_norm(y))
            raw = delta if raw is None else raw.detach() + delta
            answers.append(torch.cat((raw[..., :7], F.relu(raw[..., 7:])), -1))
        return answers


class ResidualUnit(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        x = F.relu(x)
        return self.conv2(F.relu(self.conv1(x))) + x


class Fusion(nn.Module):
    def __init__(self, channels, first):
        super().__init__()
        if not first:
            self.resConfUnit1 = ResidualUnit(channels)
        self.resConfUnit2 = ResidualUnit(channels)
        self.out_conv = nn.Conv2d(channels, channels, 1)

    def forward(self, x, skip, size):
        if skip is not None:
            x = x + self.resConfUnit1(skip)
        x = resize(self.resConfUnit2(x), size)
        return self.out_conv(x)


def resize(x, size):
    return F.interpolate(x, size, mode="bilinear", align_corners=True)


def position_map(channels, height, width, aspect):
    """0.1 * [sin u, cos u, sin v, cos v] of the image plane, [channels, height, width]."""
    g = math.hypot(aspect, 1.0)
    u = torch.linspace(-1, 1, width, dtype=torch.float64) * (aspect / g) * (width - 1) / width
    v = torch.linspace(-1, 1, height, dtype=torch.float64) / g * (height - 1) / height
    base = 100.0 ** (-torch.arange(channels // 4, dtype=torch.float64) / (channels // 4))
    u, v = base[:, None] * u, base[:, None] * v
    u = torch.cat((u.sin(), u.cos()))[:, None, :].expand(-1, height, -1)
    v = torch.cat((v.sin(), v.cos()))[:, :, None].expand(-1, -1, width)
    return (0.1 * torch.cat((u, v))).float()


class DepthHead(nn.Module):
    def __init__(self, c):
        super().__init__()
        features, out, dim = c["dpt_features"], c["dpt_out"], 2 * c["embed_dim"]
        self.size = c["demo"]["input_h"], c["demo"]["input_w"]
        self.grid = self.size[0] // PATCH, self.size[1] // PATCH
        self.levels = c["selected"]
        self.norm = nn.LayerNorm(dim, eps=1e-5)
        self.projects = nn.ModuleList(nn.Conv2d(dim, o, 1) for o in out)
        self.resize_layers = nn.ModuleList([
            nn.ConvTranspose2d(out[0], out[0], 4, 4), nn.ConvTranspose2d(out[1], out[1], 2, 2),
            nn.Identity(), nn.Conv2d(out[3], out[3], 3, 2, 1),
        ])
        s = self.scratch = nn.Module()
        for k in range(4):
            s.add_module(f"layer{k + 1}_rn", nn.Conv2d(out[k], features, 3, padding=1, bias=False))
            s.add_module(f"refinenet{k + 1}", Fusion(features, first=k == 3))
        s.output_conv1 = nn.Conv2d(features, features // 2, 3, padding=1)
        s.output_conv2 = nn.Sequential(
            nn.Conv2d(features // 2, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 2, 1))
        with torch.no_grad():
            s.output_conv2[2].bias.copy_(torch.tensor([0.8, 0.0]))
        aspect = self.size[1] / self.size[0]
        for k, o in enumerate(out):
            self.register_buffer(f"place{k}", position_map(o, *self.grid, aspect), persistent=False)
        self.register_buffer("place", position_map(features // 2, *self.size, aspect), persistent=False)

    def forward(self, levels):
        """levels: four of [N, P, 2C]; log depth and confidence logit, each [N, H, W]."""
        s, maps = self.scratch, []
        for k, tokens in enumerate(levels):
            x = self.norm(tokens[:, SPECIAL:]).transpose(1, 2).unflatten(2, self.grid)
            x = self.resize_layers[k](self.projects[k](x) + getattr(self, f"place{k}"))
            maps.append(getattr(s, f"layer{k + 1}_rn")(x))
        sizes = [tuple(m.shape[-2:]) for m in maps]
        x = s.refinenet4(maps[3], None, sizes[2])
        x = s.refinenet3(x, maps[2], sizes[1])
        x = s.refinenet2(x, maps[1], sizes[0])
        x = s.refinenet1(x, maps[0], (2 * sizes[0][0], 2 * sizes[0][1]))
        x = resize(s.output_conv1(x), self.size) + self.place
        return s.output_conv2(x).unbind(1)


class GCTStream(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.scale_frames = c["scale_frames"]
        self.aggregator = Aggregator(c)
        self.camera_head = CameraHead(c)
        self.depth_head = DepthHead(c)
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(STD).view(3, 1, 1), persistent=False)

    def forward(self, images, time, special_bias, patch_bias, depth_of):
        """One sequence a row: uint8 images [B, F, H, W, 3], time [B, F], biases [B, F, F] on the attention of a frame
        (row) to the special tokens and to the patches of another, indices `depth_of` into the B*F frames.
        Returns the levels, the pose of each iteration, log depth and confidence logit of the chosen frames."""
        images = (images.permute(0, 1, 4, 2, 3) / 255.0 - self.mean) / self.std
        patches = (images.shape[-1] // PATCH) * (images.shape[-2] // PATCH)
        bias = torch.cat((special_bias[..., None].expand(-1, -1, -1, SPECIAL),
                          patch_bias[..., None].expand(-1, -1, -1, patches)), -1).flatten(2)
        bias = bias.repeat_interleave(SPECIAL + patches, 1)[:, None]
        levels = self.aggregator(images, time, bias, self.scale_frames)
        poses = self.camera_head(levels[-1][:, :, 0], special_bias[:, None])
        chosen = [level.flatten(0, 1)[depth_of] for level in levels[-4:]]
        return levels, poses, *self.depth_head(chosen)
