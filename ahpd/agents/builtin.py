"""The script that plays when no file is given, for people who look around.

A prompt that contains "ask", "worker", "background", "hang", "fail", "crash" or "long" plays a
short entry of that kind. Every other one gets the tour of what every agent does, which takes three
to four seconds when its question is answered at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ahpd.agents.script import Entry, Script
from ahpd.agents.steps import (
    Activity,
    Ask,
    AskStep,
    Background,
    BackgroundStep,
    Crash,
    Echo,
    Fail,
    Hang,
    Sleep,
    Step,
    Text,
    Thought,
    Title,
    Tool,
    ToolStep,
    Usage,
    Worker,
    WorkerStep,
)
from ahpd.protocol.common import UsageInfo
from ahpd.protocol.inputs import (
    ChatInputBooleanQuestion,
    ChatInputOption,
    ChatInputSingleSelectQuestion,
    ChatInputTextQuestion,
)
from ahpd.protocol.tools import ConfirmationOption

#: Milliseconds between two words: about as fast as a person reads along.
PACE = 40


def _spoken(text: str) -> Iterator[Step]:
    """The text word by word."""
    for word in re.findall(r"\s*\S+\s*", text):
        yield Text(word)
        yield Sleep(PACE)


_LIST_FILES = Tool(
    name="list_files",
    title="List the files",
    input={"folder": "."},
    output="README.md\nnotes.txt\nsrc/\n",
    takes_ms=500,
)
_WRITE_NOTE = Tool(
    name="write_note",
    title="Write a note",
    input={"file": "notes.txt", "line": "The script was here."},
    confirm=True,
    options=(
        ConfirmationOption(id="once", label="Yes, this time", kind="approve", group=0),
        ConfirmationOption(id="always", label="Yes, from now on", kind="approve", group=0),
        ConfirmationOption(id="no", label="No, leave it", kind="deny", group=1),
    ),
    output="One line added to notes.txt (not really: this is a script).\n",
    takes_ms=400,
)

_TOUR = Entry(
    steps=(
        Title("A short tour"),
        Activity("Thinking"),
        Thought("Somebody is here. "),
        Sleep(200),
        Thought("I will show them one of everything. "),
        Sleep(200),
        *_spoken(
            "Hello! I am a script, not a mind, but I move like an agent. First I look around:"
        ),
        Activity("Looking around"),
        ToolStep(_LIST_FILES),
        *_spoken(
            "\n\nThree entries. May I write something down? You decide, and every screen asks:"
        ),
        Activity("Asking"),
        ToolStep(_WRITE_NOTE),
        Activity("Finishing"),
        *_spoken(
            "\n\nThere is more: *ask*, *worker*, *background*, *hang*, *fail*, *crash*, *long*."
            " And you said:\n\n> "
        ),
        Echo(),
        Usage(
            UsageInfo(
                input_tokens=420, output_tokens=128, cache_read_tokens=64, model="script-large"
            )
        ),
        Activity(None),
    )
)


def _on(word: str, *steps: Step) -> Entry:
    return Entry(when=re.compile(rf"(?i)\b{word}\b"), steps=steps)


_ASK = Ask(
    message="Before I begin",
    questions=(
        ChatInputTextQuestion(id="name", message="What shall it be called?", required=True),
        ChatInputSingleSelectQuestion(
            id="size",
            message="How large?",
            options=(
                ChatInputOption(id="small", label="Small", recommended=True),
                ChatInputOption(id="large", label="Large"),
            ),
        ),
        ChatInputBooleanQuestion(id="tests", message="With tests?", default_value=True),
    ),
)

#: The built-in script.
BUILTIN = Script(
    turns=(
        _on("ask", *_spoken("A question or three:"), AskStep(_ASK), Text("\n\nThank you.")),
        _on(
            "worker",
            *_spoken("I pass this on."),
            WorkerStep(
                Worker(
                    "Look around",
                    (*_spoken("I am the worker, and I look:"), ToolStep(_LIST_FILES)),
                )
            ),
            *_spoken("\n\nAnd that was the worker."),
        ),
        _on(
            "background",
            BackgroundStep(Background("make watch", label="Watch the build", for_ms=60_000)),
            *_spoken("Something goes on for a minute now; you need not wait for it."),
        ),
        _on(
            "hang",
            Activity("Hanging"),
            *_spoken("I stop here and stay until you cancel or steer me."),
            Hang(),
        ),
        _on(
            "fail",
            *_spoken("This goes wrong, but you can try again."),
            Fail("The script failed, as you asked it to.", resumable=True),
            *_spoken("\n\nSecond try, and this time it worked."),
        ),
        _on("crash", *_spoken("Mind the step."), Crash("the script crashed, as you asked it to")),
        _on(
            "long",
            *_spoken("This takes ten seconds; cancel me if that is too long.\n\n"),
            Text("and on ", times=200, every_ms=50),
            Text("and done."),
        ),
        _TOUR,
    )
)
