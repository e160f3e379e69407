-module(witness_record_victim).
-moduledoc """
A VM that records what some processes do, as fast as they can, until it is killed. What a process does next follows from its
number and how much it has done, so a reader of the recording knows what must be there.

On standard output there is a dot for each thousand of things that one of them has done.
""".

-export([main/0, process/1, entry/2, calls/0]).

-define(PROCESSES, 4).

-doc "Begins. The only argument of the VM is the folder.".
main() ->
    [Dir] = init:get_plain_arguments(),
    ok = witness_record_native:start(#{order => 256}),
    {ok, _} = witness_record_writer:start_link(Dir, #{calls => calls()}, #{flush => 20}),
    Session = trace:session_create(?MODULE, witness_record_native:tracer(), []),
    _ = trace:process(Session, new, true, [procs]),
    [begin
         Id = witness_record_native:child(),
         spawn_link(?MODULE, process, [Id])
     end || _ <- lists:seq(1, ?PROCESSES)],
    receive never -> Session end.

-doc "Calls with recorded results.".
calls() -> #{{erlang, monotonic_time, 0} => 3, {ets, lookup, 2} => 300}.

-doc "Does one thing after the other.".
process(Id) -> process(Id, 1).

process(Id, N) ->
    ok = record(Id, entry(Id, N)),
    _ = N rem 1000 =:= 0 andalso io:put_chars("."),
    process(Id, N + 1).

record(Id, {from, From}) ->
    case witness_record_native:took(Id, From) of
        Said when Said =:= ok; Said =:= calm; Said =:= look -> ok
    end;
record(Id, {content, Term}) -> witness_record_native:content(Id, Term);
record(Id, timeout) -> witness_record_native:timeout(Id);
record(Id, {result, MFA, Term}) -> witness_record_native:result(Id, maps:get(MFA, calls()), Term);
record(Id, {raise, MFA, Class, Reason}) -> witness_record_native:raise(Id, maps:get(MFA, calls()), {Class, Reason}).

-doc "What a process does as its `N`th thing.".
entry(Id, N) ->
    case erlang:phash2({Id, N}, 16) of
        0 -> {content, {Id, N, binary:copy(~"x", N rem 300)}};
        1 -> {result, {erlang, monotonic_time, 0}, -N * 1000};
        2 -> {result, {ets, lookup, 2}, [{key, N}]};
        3 -> {result, {ets, lookup, 2}, []};
        4 -> {raise, {ets, lookup, 2}, error, {badarg, N}};
        Few when Few < 8 -> timeout;
        _ -> {from, 1 + N div 7 rem ?PROCESSES}
    end.
