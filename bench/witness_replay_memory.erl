-module(witness_replay_memory).
-moduledoc "The largest memory of the VM in which a replay runs (`VmHWM`, where the system reports it).".

-export([look/0, most/1]).

-doc "Samples, from now on, the VMs of replays that this one has started.".
-spec look() -> pid().
look() -> spawn_link(fun() -> look(0) end).

-doc "Stops sampling, and returns kilobytes.".
-spec most(pid()) -> non_neg_integer().
most(Looking) ->
    Looking ! {most, self()},
    receive {Looking, Kilobytes} -> Kilobytes end.

%% The VM of the replay is the one with the boot file that was written for it.
look(Most) ->
    receive
        {most, To} -> To ! {self(), Most}
    after 50 ->
        look(lists:max([Most | [Kilobytes || Dir <- filelib:wildcard("/proc/[0-9]*"), is_replay(Dir),
                                             Kilobytes <- high_water(Dir)]]))
    end.

is_replay(Dir) ->
    case file:read_file(filename:join(Dir, "cmdline")) of
        {ok, Line} -> binary:match(Line, list_to_binary(["/replay.", os:getpid(), "."])) =/= nomatch;
        {error, _} -> false
    end.

high_water(Dir) ->
    maybe
        {ok, Status} ?= file:read_file(filename:join(Dir, "status")),
        {match, [Number]} ?= re:run(Status, "VmHWM:\\s+([0-9]+) kB", [{capture, all_but_first, list}]),
        [list_to_integer(Number)]
    else
        _ -> []
    end.
