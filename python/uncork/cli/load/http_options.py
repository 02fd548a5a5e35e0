"""The options of `uncork load http`: h2load's where it has them, with its meaning, and those beyond it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uncork.cli.load.options import HOW, SWEEP, WHAT, WHEN, Text, Texts, flag, option

CHECK, LOOK = "What answers must be", "Who else to look at"

Urls = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="URL[@W]...",
        help="Where to send requests; {name} stands for a variable, W for a weight.",
        show_default=False,
    ),
]
InputFile = Annotated[
    Text,
    option(
        "-i",
        "--input-file",
        metavar="FILE",
        help="Addresses, one a line, taken in turn; - is here.",
        panel=WHAT,
    ),
]
Method = Annotated[
    Text, option("-X", "--method", metavar="METHOD", help="GET, or with a body POST.", panel=WHAT)
]
Header = Annotated[
    Texts, option("-H", "--header", metavar="'NAME: VALUE'", help="Send this header too.", panel=WHAT)
]
Data = Annotated[Text, option("-d", "--data", metavar="FILE", help="Send this file as the body.", panel=WHAT)]
Body = Annotated[Text, option("--body", metavar="TEXT", help="Send this text as the body.", panel=WHAT)]
Var = Annotated[
    Texts,
    option(
        "--var",
        metavar="NAME=VALUES",
        help="What {NAME} stands for: 1..1000, a,b,c or @FILE with one a line; drawn at random, or with a + "
        "in front of the values taken in turn.",
        panel=WHAT,
    ),
]

ExpectStatus = Annotated[
    Text, option("--expect-status", metavar="200,304", help="Else 200 to 399.", panel=CHECK)
]
ExpectHeader = Annotated[
    Texts,
    option("--expect-header", metavar="'NAME[: VALUE]'", help="It is there, with this value.", panel=CHECK),
]
ExpectSize = Annotated[
    Text, option("--expect-size", metavar="BYTES", help="The body has this size.", panel=CHECK)
]
ExpectSha256 = Annotated[
    Text, option("--expect-sha256", metavar="HEX", help="The body has this digest.", panel=CHECK)
]
ExpectJson = Annotated[
    Texts,
    option(
        "--expect-json",
        metavar="/POINTER=VALUE",
        help="The body is JSON and has this value there (a JSON pointer).",
        panel=CHECK,
    ),
]

Clients = Annotated[
    Text, option("-c", "--clients", metavar="NUM", help="Number of connections. Default: 1.", panel=HOW)
]
Streams = Annotated[
    Text,
    option(
        "-m",
        "--max-concurrent-streams",
        metavar="NUM",
        help="Requests under way at once on a connection: streams of HTTP/2, pipelined in HTTP/1.1. "
        "Default: 1.",
        panel=HOW,
    ),
]
Threads = Annotated[
    Text,
    option("-t", "--threads", metavar="NUM", help="Number of threads, at most -c. Default: 1.", panel=HOW),
]
H1 = Annotated[bool, flag("--h1", help="HTTP/1.1, also where TLS would agree on HTTP/2.", panel=HOW)]
H2 = Annotated[bool, flag("--h2", help="HTTP/2; without TLS with prior knowledge (h2c).", panel=HOW)]
NoTlsProto = Annotated[
    Text, option("-p", "--no-tls-proto", metavar="h2c|http/1.1", help="h2load's --h2 and --h1.", panel=HOW)
]
ConnectEach = Annotated[
    bool, flag("-C", "--connect", help="A connection for each request: no keep-alive.", panel=HOW)
]
OnClose = Annotated[
    Text,
    option(
        "--on-close",
        metavar="reconnect|stop",
        help="When the server closes a connection. Default: reconnect.",
        panel=HOW,
    ),
]
Timeout = Annotated[
    Text,
    option("--timeout", metavar="TIME", help="Of a request; 0 is without. Default: 30s.", panel=HOW),
]
ConnectTimeout = Annotated[
    Text,
    option("--connect-timeout", metavar="TIME", help="Of opening a connection. Default: 10s.", panel=HOW),
]
CaCert = Annotated[
    Path | None, option("--cacert", metavar="FILE", help="Trust these authorities (PEM).", panel=HOW)
]
Insecure = Annotated[
    bool, flag("-k", "--insecure", help="Trust whatever certificate the server has.", panel=HOW)
]
Seed = Annotated[Text, option("--random-seed", metavar="NUM", help="Seed of everything random.", panel=HOW)]

Requests = Annotated[
    Text, option("-n", "--requests", metavar="NUM", help="Requests of all clients. Default: 1.", panel=WHEN)
]
Duration = Annotated[Text, option("-D", "--duration", metavar="TIME", help="How long to load.", panel=WHEN)]
WarmUp = Annotated[
    Text,
    option("--warm-up-time", metavar="TIME", help="Load so long before anything is counted.", panel=WHEN),
]
Rps = Annotated[
    Text,
    option(
        "--rps",
        metavar="NUM",
        help="Open loop: so many requests a second arrive for each client.",
        panel=WHEN,
    ),
]
Rate = Annotated[
    Text, option("-R", "--rate", metavar="NUM", help="Open loop: so many arrive for all.", panel=WHEN)
]
Arrivals = Annotated[
    Text,
    option(
        "--arrivals",
        metavar="constant|poisson|bursts:SIZE|trace:FILE",
        help="How they arrive; a trace has times of its own, in seconds, one a line. Else constant.",
        panel=WHEN,
    ),
]
MaxClients = Annotated[
    Text,
    option("--max-clients", metavar="NUM", help="Open loop: connections may grow to so many.", panel=WHEN),
]
LatencyLimit = Annotated[
    Text,
    option(
        "-L",
        "--latency-limit",
        metavar="TIME",
        help="Count requests over it as late; an open loop skips those so late already.",
        panel=WHEN,
    ),
]

Sweep = Annotated[
    Text,
    option(
        "--sweep",
        metavar="clients|rate|streams",
        help="Raise the load by itself, from -c, -R or -m on, in visits of -D (2s), and say where the "
        "service bends or breaks, and what gives out.",
        panel=SWEEP,
    ),
]
To = Annotated[
    Text,
    option("--to", metavar="NUM", help="The highest level. Default: 512 clients, 256 streams.", panel=SWEEP),
]
ServicePid = Annotated[
    Texts,
    option(
        "--service-pid",
        metavar="PID",
        help="A process of the service, with its children. Else those that listen on the port, if here.",
        panel=LOOK,
    ),
]
Postgres = Annotated[
    Text,
    option(
        "--postgres",
        metavar="CONNINFO",
        help="The PostgreSQL behind the service: what its sessions do and wait for.",
        panel=LOOK,
    ),
]
