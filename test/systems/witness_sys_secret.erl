-module(witness_sys_secret).
-moduledoc """
Processes of which some hide from tracing by their `sensitive` flag: their traces have a gap from then on.
""".
-export([main/0, open/1, hides/1, hides_late/1]).

-spec main() -> ok.
main() ->
    Pids = [spawn_monitor(?MODULE, F, [self()]) || F <- [open, hides, hides_late]],
    _ = [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Pids],
    ok.

-spec open(pid()) -> {bye, pid()}.
open(Root) -> Root ! hello, Root ! {bye, self()}.

-doc "What a sensitive process sends and receives is not traced.".
-spec hides(pid()) -> {bye, pid()}.
hides(Root) ->
    false = process_flag(sensitive, true),
    open(Root).

-doc "The verdict has fallen before the process hides.".
-spec hides_late(pid()) -> {bye, pid()}.
hides_late(Root) ->
    Root ! hello,
    false = process_flag(sensitive, true),
    Root ! {bye, self()}.
