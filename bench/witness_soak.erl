-module(witness_soak).
-moduledoc """
Soundness under load (promise 1): runs a load of `m:witness_load` with every process
monitored by `m:witness_load_monitor`, and reports what was not sound.

`run/1` gives the faults, `[]` when there are none: a trace that is not sound, a gap, a
monitor or a tracer that is left, memory that is not released, a result of the system
that differs from what it is without Witness.

Central monitoring may not keep up. Then gaps are no faults: undecided monitors have to say so, no process may
be judged after that, and everything else must still hold.
""".

-export([main/1, run/1]).

-doc """
What to run: `{flat, Workers, Alive, Requests}`, `{tree, Rounds, Depth, Branch, Requests}` or
`{chains, Chains, Length, Ticks}`, whether another process asks for `process_info` of all processes in a loop meanwhile,
the source of events, if not the default, and how monitors are connected, if not outline.
""".
-type load() :: #{load := tuple(), pest := boolean(), source => native | evm, instrument => outline | central,
                  memory => pos_integer()}.

-doc "The command line: each argument is a load as a term. Ends with status 1 on a fault.".
-spec main([string()]) -> no_return().
main(Args) ->
    Faults = [begin
                  Load = term(Arg),
                  io:format("OTP ~s, ~w scheduler(s), ~0p: ",
                            [erlang:system_info(otp_release), erlang:system_info(schedulers_online), Load]),
                  {Time, Faults} = timer:tc(fun() -> run(Load) end, second),
                  io:format("~ts (~w s)~n", [verdict(Faults), Time]),
                  Faults
              end || Arg <- Args],
    halt(case lists:append(Faults) of [] -> 0; _ -> 1 end).

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

verdict([]) -> "sound";
verdict(Faults) -> io_lib:format("NOT SOUND~n~p", [Faults]).

-spec run(load()) -> [term()].
run(#{load := Load, pest := Pest} = Given) ->
    [Kind | Arguments] = tuple_to_list(Load),
    {ok, _} = application:ensure_all_started(witness),
    MayMiss = maps:get(instrument, Given, outline) =:= central,
    Before = state(),
    Self = self(),
    Pester = [spawn_link(fun pest/0) || Pest],
    {ok, Run} = witness:start((maps:with([source, instrument, memory], Given))#{
                                system => {witness_load, Kind, [Self | Arguments]},
                                monitors => [{{witness_load, F, '_'}, {witness_load_monitor, check}}
                                             || F <- [Kind, node, link]],
                                max_verdicts => 10, drain => infinity, log => false,
                                on_verdict => fun(#{verdict := yes}) -> ok;
                                                 (#{verdict := inconclusive, reason := {gap, _}}) when MayMiss -> ok;
                                                 (V) -> Self ! {unsound, maps:with([verdict, reason, info, process], V)}
                                              end}),
    Messages = receive {done, _, M, _} -> M end,
    {ok, Summary} = witness:await(Run, infinity),
    {ok, _} = witness:stop(Run),
    lists:foreach(fun(P) -> unlink(P), exit(P, kill) end, Pester),
    Expected = processes(Load),
    Faults = case Summary of
        #{outcome := untrusted} when MayMiss -> missed(Summary);
        #{} -> complete(Summary, Expected)
    end,
    unsound(5)
        ++ [{messages, Messages, messages(Load)} || Messages =/= messages(Load)]
        ++ Faults
        ++ left(Before, 1200).

complete(#{verdicts := Verdicts, gaps := Gaps, monitored := Monitored, processes := Processes}, Expected) ->
    [{processes, Processes, Expected} || Processes =/= Expected]
        ++ [{monitored, Monitored, Expected} || Monitored =/= Expected]
        ++ [{verdicts, Verdicts} || Verdicts =/= #{yes => Expected, no => 0, inconclusive => 0}]
        ++ [{gaps, Gaps} || Gaps =/= 0].

%% Nothing was gathered from then on.
missed(#{verdicts := #{yes := Yes, no := No, inconclusive := Gaps}, gaps := Gaps, monitored := Monitored,
         warnings := Warnings}) when No =:= 0, Yes + Gaps =:= Monitored ->
    io:format("from ~w of ~w monitors events are missing: ", [Gaps, Monitored]),
    [{untold, Warnings} || not lists:any(fun(#{code := Code}) -> Code =:= overflow orelse Code =:= memory end, Warnings)];
missed(Summary) ->
    [{summary, Summary}].

unsound(0) -> [];
unsound(N) -> receive {unsound, V} -> [V | unsound(N - 1)] after 0 -> [] end.

processes({flat, Workers, _, _}) -> Workers + 1;
processes({chains, Chains, Length, _}) -> 1 + Chains * (Length + 1);
processes({tree, Rounds, Depth, Branch, _}) -> 1 + Rounds * descendants(Depth, Branch).

descendants(0, Branch) -> Branch;
descendants(Depth, Branch) -> Branch + Branch * descendants(Depth - 1, Branch).

%% The messages that the first process serves.
messages({flat, Workers, _, Requests}) -> Workers * (Requests + 1);
messages({chains, Chains, _, _}) -> Chains;
messages({tree, Rounds, _, Branch, Requests}) -> Rounds * Branch * (Requests + 1).

%% Processes and memory are released after the last processes have ended, and no event reports that:
%% check again a bounded number of times.
left(Before = {Processes, Memory}, Tries) ->
    case state() of
        {P, M} when P =< Processes, M =< Memory * 1.2 + 5.0e6 -> [];
        After when Tries =:= 0 -> [{left, Before, After}];
        _ -> timer:sleep(50), left(Before, Tries - 1)
    end.

state() ->
    lists:foreach(fun erlang:garbage_collect/1, erlang:processes()),
    {length(erlang:processes()), memory()}.

%% A VM that leaves its memory to the C library (`+Mea min`) does not know how much it has.
memory() ->
    try erlang:memory([total, code, atom]) of
        [{total, Total}, {code, Code}, {atom, Atom}] -> Total - Code - Atom
    catch
        error:notsup -> 0
    end.

pest() ->
    lists:foreach(fun(P) -> process_info(P, status) end, erlang:processes()),
    pest().
