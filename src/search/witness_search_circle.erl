-module(witness_search_circle).
-moduledoc """
Processes of which each waits for an answer of the next, and the last one for one of the first, so that none ever goes on.

A process waits for another one if it waits without an end, in a function of OTP that waits for an answer, and monitors that one and no other
(`m:witness_run_remaining`). If nothing more can happen, no process answers for another one. Otherwise a server that has taken a request may
have passed it on: the request must be in its mailbox, or it handles a call.
""".

-export([find/3]).

-doc "The first circle, from its oldest process on. `Real`: the process of this VM; `IsQuiet`: whether nothing more can happen.".
-spec find(witness_search_world:world(), Real :: fun((witness_search_world:id()) -> pid()), IsQuiet :: boolean()) ->
    none | [witness_search_world:id(), ...].
find(World, Real, IsQuiet) ->
    Awaited = #{Id => Other || Id <- witness_search_world:alive(World),
                               {waits, _, infinity} <- [witness_search_world:status(Id, World)],
                               {_, Monitored} <- [witness_search_world:has(Id, World)], [Other] <- [lists:usort(Monitored)]},
    Circles = [Circle || Id <- lists:sort(maps:keys(Awaited)), {true, Circle} <- [witness_run_remaining:circle(Id, Awaited)]],
    Waits = fun(Id) ->
        awaits(Real(Id)) andalso (IsQuiet orelse is_called(map_get(Id, Awaited), Id, Real, World))
    end,
    case lists:search(fun(Circle) -> lists:all(Waits, Circle) end, Circles) of
        {value, Circle} -> Circle;
        false -> none
    end.

awaits(Pid) ->
    {current_stacktrace, Stack} = process_info(Pid, current_stacktrace),
    witness_run_remaining:awaits(witness_search_results:of_program(Stack)).

is_called(Server, Caller, Real, World) ->
    Pid = witness_search_world:pid(Caller, World),
    witness_run_remaining:has_request(Pid, witness_search_world:messages(Server, World)) orelse handles_call(Real(Server)).

%% With the frames of the search it may be too deep for the trace of a stack.
handles_call(Pid) ->
    {backtrace, Text} = process_info(Pid, backtrace),
    binary:match(Text, ~"gen_server:try_handle_call/") =/= nomatch.
