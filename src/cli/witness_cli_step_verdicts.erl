-module(witness_cli_step_verdicts).
-moduledoc """
Where in a run monitors have decided. They watch a replay of their own. A verdict names the entry of a process and the event, and
that determines the step, since each process does the same in every replay.
""".

-export([find/3]).

-export_type([placed/0]).

-doc "The step that decided it, the verdict, and its text.".
-type placed() :: {pos_integer(), yes | no | inconclusive, unicode:chardata()}.

-doc "Verdicts with the steps that decided them, in their order; a verdict without a deciding event is at the last entry.".
-spec find(Properties :: map(), witness_replay:options(), witness_step:session()) ->
    {ok, [placed()]} | {error, unicode:chardata()}.
find(Properties, Replay, Session) ->
    Self = self(),
    Ref = make_ref(),
    Progress = maps:get(on_progress, Replay, fun(_) -> ok end),
    Counted = counters:new(1, []),
    _ = Progress(~"replays for monitors: no verdict so far"),
    OnVerdict = fun(V) ->
        ok = counters:add(Counted, 1, 1),
        _ = Progress([~"replays for monitors: ", integer_to_binary(counters:get(Counted, 1)), ~" verdicts so far"]),
        Self ! {Ref, V}
    end,
    Options = Properties#{system => {log, {replay, maps:remove(on_progress, Replay)}}, on_verdict => OnVerdict},
    {ok, _} = application:ensure_all_started(witness),
    maybe
        {ok, Run} ?= witness:start(Options),
        {ok, _} = witness:await(Run, infinity),
        {ok, _} = witness:stop(Run),
        Placed = [{Place, V} || V <- take_verdicts(Ref, []), Place <- place(V)],
        Steps = witness_step:at_entries([Place || {Place, _} <- Placed], Session),
        {ok, lists:sort([{exactly(Place, V, Candidates, Session), maps:get(verdict, V), text(V)}
                         || {Place, V} <- Placed, #{Place := Candidates} <- [Steps]])}
    else
        {error, Error} -> {error, witness:format_error(Error)}
    end.

%% The run has sent all verdicts before it ended.
take_verdicts(Ref, Verdicts) ->
    receive {Ref, Verdict} -> take_verdicts(Ref, [Verdict | Verdicts]) after 0 -> Verdicts end.

place(#{log := Place}) ->
    case re:run(Place, ":([0-9]+):([0-9]+)$", [{capture, all_but_first, binary}]) of
        {match, [Id, Entry]} -> [{binary_to_integer(Id), binary_to_integer(Entry)}];
        nomatch -> []
    end;
place(_) -> [].

%% Of the steps at an entry, the one that is this event.
exactly({_, Entry}, #{event := #{event := Event}}, [First | _] = Steps, Session) ->
    Is = fun(N) ->
        #{entry := At, what := What} = witness_step:step(N, Session),
        At =< Entry andalso same(Event, What)
    end,
    case lists:search(Is, Steps) of
        {value, N} -> N;
        false -> First
    end;
exactly(_, _, [First | _], _) -> First.

same({send, _, To, Msg, _}, {send, To, _, Msg, _}) -> true;
same({recv, _, _, Msg, _}, {recv, _, Msg}) -> true;
same({fork, _, _, _, _}, {spawn, _, _, _}) -> true;
same({init, _, _, _, _}, {born, _}) -> true;
same({exit, _, Reason, _}, {exit, _, Reason}) -> true;
same(_, _) -> false.

text(#{verdict := Verdict, spec := Spec, name := Name}) ->
    [case Verdict of no -> ~"violated"; yes -> ~"satisfied"; inconclusive -> ~"undecided" end, ~": ",
     [[witness_text:clean(Name), ~", "] || is_binary(Name)], witness_text:clean(Spec)].
