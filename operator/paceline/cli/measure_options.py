"""The machine's options for `paceline measure`: engine, variables, GPUs. Checked before any download."""

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from paceline.core import BASELINE, Arm, Server, server_of
from paceline.engines import ENGINES
from paceline.measure import devices, emulated
from paceline.measure.machine import Program

_ARM = re.compile(r"[a-z0-9][a-z0-9-]*")


class CannotError(RuntimeError):
    """Why a file cannot be measured here, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """The fields of `measure.machine.Machine` that a person chooses."""

    program: Program
    """Of the arms that share the engine."""
    own: Mapping[str, Program]
    """Of each arm with an engine of its own."""
    devices: tuple[str, ...]

    def with_variables(self, more: Mapping[str, str]) -> "Equipment":
        """Variables for all servers, unless a person gave them."""
        own = {arm: replace(one, env={**more, **one.env}) for arm, one in self.own.items()}
        return replace(self, program=replace(self.program, env={**more, **self.program.env}), own=own)


def equipment_of(args: argparse.Namespace, server: Server, arms: Iterable[Arm]) -> Equipment:
    """Raises CannotError, DevicesError, EmulatorError."""
    named = {BASELINE: server, **{arm.name: server_of(server, arm) for arm in arms if arm.engine}}
    names = {arm.name for arm in arms} | {BASELINE}
    venvs, commands = (
        _by_arm("--venv", args.venv, named, names),
        _by_arm("--engine-command", args.engine_command, named, names),
    )
    programs = {}
    for arm, own in named.items():
        venv, command = (found.get(arm, found.get("")) for found in (venvs, commands))
        programs[arm] = _program(args, own, venv, command)
    shared = programs.pop(BASELINE)
    variables = {**os.environ, **shared.env}
    gpus = () if args.emulated else devices.chosen(args.devices, server.accelerator.count, variables)
    return Equipment(program=shared, own=programs, devices=gpus)


def _by_arm(option: str, given: Iterable[str], named: Collection[str], names: Collection[str]) -> dict[str, str]:
    """Arm → its value; "" → the value for all arms without one."""
    found = dict[str, str]()
    for text in given:
        arm, equals, value = text.partition("=")
        if not (equals and arm in names):
            if equals and _ARM.fullmatch(arm) and not Path(text).exists():
                raise CannotError(f"{option}: no arm is named {arm}; there are {', '.join(sorted(names))}")
            arm, value = "", text
        if not value:
            raise CannotError(f"{option}: {text or 'it'} names nothing: write what starts the servers")
        if arm and arm not in named:
            raise CannotError(
                f"{option}: {arm} has no engine of its own in the file: write its engine.image and version"
            )
        if arm in found:
            raise CannotError(f"{option} is given twice for {arm or 'all arms'}; keep one")
        found[arm] = value
    return found


def _program(args: argparse.Namespace, server: Server, venv: str | None, command: str | None) -> Program:
    try:
        words = emulated.command(server) if args.emulated else tuple(shlex.split(command or "")) or None
    except ValueError as error:
        raise CannotError(f"--engine-command: {command}: {error}") from error
    variables = dict(emulated.emulator_variables(server)) if args.emulated else {}
    if venv:
        place = Path(venv)
        if not (place / "bin").is_dir():
            raise CannotError(f"--venv: {venv} has no bin directory; name a virtual environment")
        path = f"{(place / 'bin').absolute()}:{os.environ.get('PATH', os.defpath)}"
        variables |= {"VIRTUAL_ENV": str(place.absolute()), "PATH": path}
    variables |= dict(args.env)
    program = (words or ENGINES[server.engine.type].program)[0]
    if shutil.which(program, path=variables.get("PATH", os.environ.get("PATH"))) is None:
        raise CannotError(
            f"{program} does not exist: name what starts {server.engine.type} with --venv or --engine-command"
        )
    return Program(command=words, env=variables)
