"""The machine's options for `paceline measure`: engine, variables, GPUs. Checked before any download."""

import argparse
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.core import Server
from paceline.engines import ENGINES
from paceline.measure import devices, emulated


class CannotError(RuntimeError):
    """Why a file cannot be measured here, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """The fields of `measure.machine.Machine` that a person chooses."""

    command: tuple[str, ...] | None
    variables: Mapping[str, str]
    devices: tuple[str, ...]


def equipment_of(args: argparse.Namespace, server: Server) -> Equipment:
    """Raises CannotError, DevicesError, EmulatorError."""
    command = emulated.command(server) if args.emulated else tuple(args.engine_command or ()) or None
    variables = dict(emulated.emulator_variables(server)) if args.emulated else {}
    if args.venv:
        if not (args.venv / "bin").is_dir():
            raise CannotError(f"--venv: {args.venv} has no bin directory; name a virtual environment")
        path = f"{(args.venv / 'bin').absolute()}:{os.environ.get('PATH', os.defpath)}"
        variables |= {"VIRTUAL_ENV": str(args.venv.absolute()), "PATH": path}
    variables |= dict(args.env)
    program = (command or ENGINES[server.engine.type].program)[0]
    if shutil.which(program, path=variables.get("PATH", os.environ.get("PATH"))) is None:
        raise CannotError(
            f"{program} does not exist: name what starts {server.engine.type} with --venv or --engine-command"
        )
    gpus = () if args.emulated else devices.chosen(args.devices, server.accelerator.count, {**os.environ, **variables})
    return Equipment(command=command, variables=variables, devices=gpus)
