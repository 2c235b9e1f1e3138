"""The mapping node as a process of its own."""

import os
import pathlib
import signal
import subprocess
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXECUTABLE = pathlib.Path(os.environ.get('MAPPING_NODE', ROOT / 'target' / 'debug' / 'mapping_node'))


class MappingProcess:
    def __init__(self, folder, parameters, namespace=''):
        number = len(list(folder.glob('node-*.log')))
        self.log_file = folder / f'node-{number}.log'
        parameter_file = folder / f'node-{number}.yaml'
        parameter_file.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
        command = [EXECUTABLE, '--ros-args', '--params-file', parameter_file]
        if namespace:
            command += ['-r', f'__ns:={namespace}']
        with self.log_file.open('wb') as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log(self):
        return self.log_file.read_text(errors='replace')

    def is_running(self):
        return self.process.poll() is None

    def end(self, sent, timeout=10.0):
        """Sends a signal; returns the exit code and the seconds that the end took."""
        started = time.monotonic()
        self.process.send_signal(sent)
        code = self.process.wait(timeout=timeout)
        return code, time.monotonic() - started

    def wait(self, timeout):
        return self.process.wait(timeout=timeout)

    def stop(self):
        """Ends it whatever it does. Gracefully at first: who is killed stays known to the others for a while."""
        if self.is_running():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
