"""Trajectories of coding agents, written for this project in the formats of public ones."""

import json
import random
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]
SYSTEM = "You mend bugs in a repository. Call bash to look around and to edit; say Done when the tests pass."
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
COMMANDS = ("ls -R src", "git log --oneline", "grep -rn TODO src", "sed -n 1,80p src/app.py", "pytest -q", "git diff")
WORDS = ("def ", "return ", "self.", "value", "index", "count", " = ", "(", ")", "\n    ", "if ", "not ", "for ", "in ")


def trajectory(number: int, steps: int, characters: int) -> list[Message]:
    """A system prompt, a task, and as many calls, each with some `characters` of output; the last answer is Done."""
    dice = random.Random(number)
    found = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Mend bug {number} of this project."}]
    for step in range(steps):
        call = {"name": "bash", "arguments": json.dumps({"command": dice.choice(COMMANDS)})}
        calls = [{"id": f"{step}", "type": "function", "function": call}]
        output = "".join(dice.choices(WORDS, k=max(1, int(characters * dice.uniform(0.2, 0.5)) // 2)))
        found += [
            {"role": "assistant", "content": f"Step {step}: I look further.", "tool_calls": calls},
            {"role": "tool", "content": output, "tool_call_id": f"{step}"},
        ]
    return [*found, {"role": "assistant", "content": "Done."}]


def sessions(trajectories: Sequence[Sequence[Message]]) -> str:
    """JSON lines with the columns of thoughtworks/agentic-coding-trajectories that are read, and two that are not."""
    rows = (
        {"session_id": f"s{number}", "agent_framework": "swe-agent", "messages_json": json.dumps(one), "tools": TOOLS}
        for number, one in enumerate(trajectories)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def traced(trajectories: Sequence[Sequence[Message]]) -> str:
    """A file of SGLang's `agentic_trace`: of each turn only what is not the assistant's, here always a user's."""
    conversations = []
    for one in trajectories:
        said = [message["content"] for message in one if message["role"] in ("user", "tool")]
        first = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": said[0]}]
        later = ([{"role": "user", "content": text}] for text in said[1:])
        conversations.append([{"messages": turn, "prompt_tokens": 0} for turn in (first, *later)])
    return json.dumps({"metadata": {"source": "written for this project"}, "conversations": conversations})
