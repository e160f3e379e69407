-module(witness_otp_program).
-moduledoc "Runs one program and ends with what it has returned: a recording and its replays compare that.".

-export([run/2]).
-export([each/2, folder/0]).

-spec run(module(), atom()) -> no_return().
run(Module, Program) -> exit({result, Module:Program()}).

-doc "The results of a function for each element, each in a process of its own, in the order of the list.".
-spec each(fun((A) -> B), [A]) -> [B].
each(F, List) ->
    Monitors = [spawn_monitor(fun() -> exit({made, F(Element)}) end) || Element <- List],
    [receive {'DOWN', Monitor, process, Pid, {made, Result}} -> Result end || {Pid, Monitor} <- Monitors].

-doc "A new folder for files.".
-spec folder() -> file:filename().
folder() ->
    Dir = filename:join(os:getenv("WITNESS_OTP_WORK", "/tmp"),
                        "files-" ++ integer_to_list(erlang:unique_integer([positive])) ++ "-" ++ os:getpid()),
    ok = filelib:ensure_path(Dir),
    Dir.
