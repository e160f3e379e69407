-module(witness_step).
-moduledoc """
Steps through a recorded run, forward and back.

```erlang
1> {ok, S0} = witness_step:open(#{dir => "calc.rec"}).
2> {ok, S1} = witness_step:goto(last, S0).
3> witness_step:why(S1).
[#{number => 41,what => {send,<0.91.0>,2,{ok,-1},sure},...},...]
4> {ok, S2} = witness_step:back(S1).
5> witness_step:mailbox(2, S2).
[#{number => 40,...}]
6> ok = witness_step:close(S2).
```

`open/1` replays the recording once, and stores all that its processes do: the *steps*, numbered from 1 in an order that agrees
with cause and effect (`m:witness_step_trace`). The position is behind a step, or at 0, before the first. Going back undoes
nothing, so it is as quick as going forward. Queries refer to the position. A session belongs to the process that has opened it.

Guide: `docs/step.md`.
""".

-export([open/1, close/1, report/1, size/1, at/1, step/1, step/2]).
-export([goto/2, at_entries/2, next/1, next/2, back/1, back/2, latest/2]).
-export([processes/1, process/2, find_process/2, mailbox/2, links/2, names/1, entries/1, messages/3, why/1, why/2, process_state/2,
         calls/2]).

-compile({no_auto_import, [size/1]}).

-export_type([session/0, step/0, message/0, call/0, reason/0]).

-record(session, {trace :: witness_step_trace:trace(),
                  report :: witness_replay:report(),
                  options :: witness_replay:options(),
                  live :: witness_step_live:live(),
                  calls = none :: none | {witness_replay_traced:named(), [call()], Complete :: boolean()},
                  at = 0 :: non_neg_integer()}).

-opaque session() :: #session{}.

-type step() :: witness_step_trace:step().

-doc "A message that was taken, `from` a process or from outside (0), and the step that sent it (0: none).".
-type message() :: #{number := pos_integer(), from := non_neg_integer(), to := pos_integer(), sent := non_neg_integer(),
                     message := term()}.

-doc """
A call that a process made behind a step and before its next entry. Arguments and result are text; `none`: it did not return.
""".
-type call() :: #{number := pos_integer(), id := pos_integer(), entry := non_neg_integer(), function := mfa(), args := [binary()],
                  result := {returned, binary()} | {raised, error | exit | throw, binary()} | none}.

-doc "`none`: there is no such step.".
-type reason() :: none.

-doc """
Replays a recording, with the options of `witness_replay:replay/1`. The position is before the first step. If the replay diverges,
the session has the steps up to there, and `report/1` says so.
""".
-spec open(witness_replay:options()) -> {ok, session()} | {error, witness_replay:error()}.
open(Options) ->
    case witness_step_trace:make(Options) of
        {ok, Trace, Report} ->
            {ok, #session{trace = Trace, report = Report, options = Options, live = witness_step_live:new(Options)}};
        {error, _} = Error -> Error
    end.

-doc "Closes the session and frees all that it uses.".
-spec close(session()) -> ok.
close(#session{trace = Trace, live = Live}) ->
    ok = witness_step_live:close(Live),
    witness_step_trace:close(Trace).

-doc "How the replay went.".
-spec report(session()) -> witness_replay:report().
report(#session{report = Report}) -> Report.

-doc "How many steps there are.".
-spec size(session()) -> non_neg_integer().
size(#session{trace = Trace}) -> witness_step_trace:size(Trace).

-doc "The number of the step of the position; 0: before the first.".
-spec at(session()) -> non_neg_integer().
at(#session{at = At}) -> At.

-doc "The step of the position.".
-spec step(session()) -> step() | none.
step(#session{at = 0}) -> none;
step(#session{at = At} = S) -> step(At, S).

-doc "A step by its number.".
-spec step(pos_integer(), session()) -> step().
step(N, #session{trace = Trace}) -> witness_step_trace:step(N, Trace).

%% --- going -----------------------------------------------------------------------

-doc """
Goes to a step: a number; `last`; or a place, an entry of a process as verdicts name it. Of several steps at an entry, to the
first one.
""".
-spec goto(non_neg_integer() | last | {Id :: pos_integer(), Entry :: non_neg_integer()}, session()) ->
    {ok, session()} | {error, reason()}.
goto(last, S) -> {ok, S#session{at = size(S)}};
goto({Id, Entry}, #session{trace = Trace} = S) -> move_to(witness_step_trace:first(Id, Entry, Trace), S);
goto(N, S) ->
    case N =< size(S) of
        true -> {ok, S#session{at = N}};
        false -> {error, none}
    end.

-doc """
The steps at entries of processes: the one that `goto/2` finds, and those that follow, up to the first one behind that entry. One
pass over the run finds all of them.
""".
-spec at_entries([{Id :: pos_integer(), Entry :: non_neg_integer()}], session()) ->
    #{{pos_integer(), non_neg_integer()} => [pos_integer(), ...]}.
at_entries(Places, #session{trace = Trace}) -> witness_step_trace:at_entries(Places, Trace).

move_to(none, _) -> {error, none};
move_to(N, S) -> {ok, S#session{at = N}}.

-doc "Goes to the next step.".
-spec next(session()) -> {ok, session()} | {error, reason()}.
next(S) -> next(fun(_) -> true end, S).

-doc "Goes to the next step that passes the test.".
-spec next(fun((step()) -> boolean()), session()) -> {ok, session()} | {error, reason()}.
next(Test, #session{trace = Trace, at = At} = S) -> move_to(witness_step_trace:find(Test, At + 1, forward, Trace), S).

-doc "Goes to the step before, which may be none (0).".
-spec back(session()) -> {ok, session()} | {error, reason()}.
back(#session{at = 0}) -> {error, none};
back(#session{at = At} = S) -> {ok, S#session{at = At - 1}}.

-doc "Goes to the last step before the position that passes the test.".
-spec back(fun((step()) -> boolean()), session()) -> {ok, session()} | {error, reason()}.
back(Test, #session{trace = Trace, at = At} = S) -> move_to(witness_step_trace:find(Test, At - 1, back, Trace), S).

-doc "The last step so far that passes the test, perhaps that of the position.".
-spec latest(fun((step()) -> boolean()), session()) -> {ok, session()} | {error, reason()}.
latest(Test, #session{trace = Trace, at = At} = S) -> move_to(witness_step_trace:find(Test, At, back, Trace), S).

%% --- queries at the position -----------------------------------------------------

state(#session{trace = Trace, at = At}) -> witness_step_trace:state(At, Trace).

-doc "The processes that have been born so far, in the order of their births, and whether they are alive.".
-spec processes(session()) -> [witness_step_trace:process()].
processes(#session{trace = Trace, at = At}) ->
    [Process || #{born := Born} = Process <- witness_step_trace:processes(Trace), Born =< At].

-doc "A process by its number.".
-spec process(pos_integer(), session()) -> witness_step_trace:process().
process(Id, #session{trace = Trace}) -> witness_step_trace:process(Id, Trace).

-doc "A process that has been born so far, by its number, its pid as text, or a name that it has registered now.".
-spec find_process(binary(), session()) -> {ok, pos_integer()} | {error, none}.
find_process(Text, S) ->
    Processes = processes(S),
    Number = try binary_to_integer(Text) catch error:badarg -> none end,
    %% In Elixir they are #PID<0.90.0> and My.App.
    Pid = case Text of <<"#PID", Identifier/binary>> -> Identifier; _ -> Text end,
    Named = [Id || Name := Id <- names(S), lists:member(atom_to_binary(Name), [Text, <<"Elixir.", Text/binary>>])],
    case [Id || #{id := Id, pid := Of} <- Processes, Id =:= Number orelse list_to_binary(pid_to_list(Of)) =:= Pid] ++ Named of
        [Id | _] -> {ok, Id};
        [] -> {error, none}
    end.

-doc """
The messages that were sent to a process, and that it has not taken, by the steps that sent them. Between messages of several
senders the only order is that of the replay.
""".
-spec mailbox(pos_integer(), session()) -> [step()].
mailbox(Id, #session{trace = Trace} = S) -> [witness_step_trace:step(N, Trace) || N <- witness_step_state:mailbox(Id, state(S))].

-doc "The links of a process, its monitors, and its names.".
-spec links(pos_integer(), session()) -> #{links := [pid()], monitors := [{reference(), term()}], names := [atom()]}.
links(Id, S) ->
    State = state(S),
    #{links => witness_step_state:links(Id, State), monitors => witness_step_state:monitors(Id, State),
      names => lists:sort([Name || Name := Owner <- witness_step_state:names(State), Owner =:= Id])}.

-doc "Registered names, and the processes that have them.".
-spec names(session()) -> #{atom() => pos_integer()}.
names(S) -> witness_step_state:names(state(S)).

-doc "How many entries of its log each live process has passed.".
-spec entries(session()) -> #{pos_integer() => non_neg_integer()}.
entries(S) ->
    State = state(S),
    #{Id => witness_step_state:entry(Id, State) || #{id := Id} <- processes(S), witness_step_state:is_alive(Id, State)}.

-doc """
The state of a live process. A replay stops at the position, and the process is asked. It has stopped before its next request, so
behind the messages that it has sent since its last entry. The first query, and one after going back, takes as long as a replay to
there.
""".
-spec process_state(pos_integer(), session()) -> {{ok, witness_step_live:answer()} | {error, none | unicode:chardata()}, session()}.
process_state(Id, #session{live = Live} = S) ->
    Entries = entries(S),
    case Entries of
        #{Id := _} ->
            Ended = #{Other => infinity || #{id := Other} <- processes(S), not is_map_key(Other, Entries)},
            {Answer, Live1} = witness_step_live:ask(Id, maps:merge(Ended, Entries), Live),
            {Answer, S#session{live = Live1}};
        #{} -> {{error, none}, S}
    end.

-doc """
The calls of a function in the whole run, in the order of the steps behind which they were made, whether or not a step happened
during a call. That takes a replay, unless the same function was asked for before. If there are more than ten thousand, the result
has the first that this replay made, and `Complete` is `false`.
""".
-spec calls(witness_replay_traced:named(), session()) ->
    {{ok, [call()], Complete :: boolean()} | {error, unicode:chardata()}, session()}.
calls(Function, #session{calls = {Function, Calls, Complete}} = S) -> {{ok, Calls, Complete}, S};
calls(Function, #session{options = Options, report = #{outcome := Outcome}, trace = Trace} = S) ->
    case witness_replay:calls(Function, Options) of
        {ok, #{outcome := Outcome}, #{calls := Found, complete := Complete}} ->
            Calls = placed(Found, Trace),
            {{ok, Calls, Complete}, S#session{calls = {Function, Calls, Complete}}};
        {ok, _, _} -> {{error, ~"the replay in which it was traced has diverged, and the one before had not"}, S};
        {error, {Module, Reason}} -> {{error, Module:format_error(Reason)}, S}
    end.

placed(Found, Trace) ->
    Steps = witness_step_trace:find_steps([{Id, Entry} || #{id := Id, entry := Entry} <- Found], Trace),
    Calls = [Call#{number => Step} || #{id := Id, entry := Entry} = Call <- Found, #{{Id, Entry} := Step} <- [Steps]],
    lists:sort(fun(#{number := A}, #{number := B}) -> A =< B end, Calls).

-doc "The last messages that were taken so far, the earliest first; `infinity`: all.".
-spec messages(pos_integer() | infinity, all | [pos_integer()], session()) -> [message()].
messages(Count, Of, #session{trace = Trace, at = At}) -> messages(At, Count, Of, Trace, []).

messages(0, _, _, _, Found) -> Found;
messages(_, 0, _, _, Found) -> Found;
messages(N, Count, Of, Trace, Found) ->
    case witness_step_trace:step(N, Trace) of
        #{what := {recv, From, Message}, id := To, cause := Cause} ->
            {Sender, Sent} = case From of outside -> {0, 0}; _ -> {From, Cause} end,
            case Of =:= all orelse lists:member(Sender, Of) orelse lists:member(To, Of) of
                true ->
                    messages(N - 1, decrement(Count), Of, Trace,
                             [#{number => N, from => Sender, to => To, sent => Sent, message => Message} | Found]);
                false -> messages(N - 1, Count, Of, Trace, Found)
            end;
        #{} -> messages(N - 1, Count, Of, Trace, Found)
    end.

decrement(infinity) -> infinity;
decrement(Count) -> Count - 1.

%% --- why -------------------------------------------------------------------------

-doc "The chain of causes of the step of the position.".
-spec why(session()) -> [witness_step_why:entry()].
why(S) -> why(infinity, S).

-doc """
The chain of causes, this step first, with a maximum length, and notes (`m:witness_step_why`). The numbers of steps agree with cause and
effect where messages and births have them. The replay does not order ends, signals, and what a process waited for in vain, so such a
cause may have a larger number.
""".
-spec why(pos_integer() | infinity, session()) -> [witness_step_why:entry()].
why(_, #session{at = 0}) -> [];
why(Count, #session{trace = Trace, at = At}) -> witness_step_why:chain(Count, At, Trace).
