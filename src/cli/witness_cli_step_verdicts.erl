-module(witness_cli_step_verdicts).
-moduledoc """
Where in a run monitors have decided. They watch a replay of their own, and a verdict names the entry of a process and the event: that
is the step, since each process does the same in every replay.
""".

-export([find/3]).

-doc "Verdicts with the steps that decided them, in their order; those that no event has decided stand at the last entry.".
-spec find(Properties :: map(), witness_replay:options(), witness_step:session()) ->
    {ok, [{pos_integer(), unicode:chardata()}]} | {error, unicode:chardata()}.
find(Properties, Replay, Session) ->
    Self = self(),
    Ref = make_ref(),
    Options = Properties#{system => {log, {replay, maps:remove(on_progress, Replay)}}, on_verdict => fun(V) -> Self ! {Ref, V} end},
    {ok, _} = application:ensure_all_started(witness),
    maybe
        {ok, Run} ?= witness:start(Options),
        {ok, _} = witness:await(Run, infinity),
        {ok, _} = witness:stop(Run),
        {ok, lists:sort([{N, text(V)} || V <- told(Ref, []), N <- step(V, Session)])}
    else
        {error, Reason} -> {error, witness:format_error(Reason)}
    end.

%% All that were told before the run has ended.
told(Ref, Verdicts) ->
    receive {Ref, Verdict} -> told(Ref, [Verdict | Verdicts]) after 0 -> Verdicts end.

step(#{log := Place, event := Decided}, Session) ->
    case re:run(Place, ":([0-9]+):([0-9]+)$", [{capture, all_but_first, binary}]) of
        {match, [Id, Entry]} ->
            At = {binary_to_integer(Id), binary_to_integer(Entry)},
            case witness_step:goto(At, Session) of
                {ok, There} -> [exactly(At, Decided, There)];
                {error, none} -> []
            end;
        nomatch -> []
    end;
step(_, _) -> [].

%% Of the steps at an entry the one that is the event.
exactly({Id, Entry}, #{event := Event}, There) ->
    Is = fun(#{id := Own, entry := At, what := What}) -> Own =/= Id orelse At =< Entry andalso not same(Event, What) end,
    Behind = fun(Step) -> not Is(Step) end,
    case Behind(witness_step:step(There)) orelse witness_step:next(Behind, There) of
        {ok, Found} ->
            case witness_step:step(Found) of
                #{entry := Entry, number := N} -> N;
                _ -> witness_step:at(There)
            end;
        _ -> witness_step:at(There)
    end;
exactly(_, undefined, There) -> witness_step:at(There).

same({send, _, To, Msg, _}, {send, To, _, Msg, _}) -> true;
same({recv, _, _, Msg, _}, {recv, _, Msg}) -> true;
same({fork, _, _, _, _}, {spawn, _, _, _}) -> true;
same({init, _, _, _, _}, {born, _}) -> true;
same({exit, _, Reason, _}, {exit, _, Reason}) -> true;
same(_, _) -> false.

text(#{verdict := Verdict, spec := Spec, name := Name}) ->
    [case Verdict of no -> ~"violated"; yes -> ~"satisfied"; inconclusive -> ~"undecided" end, ~": ",
     [[witness_text:clean(Name), ~", "] || is_binary(Name)], witness_text:clean(Spec)].
