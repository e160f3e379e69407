-module(witness_step_state).
-moduledoc """
The state at a point of a run: live processes, messages sent and not taken, links, monitors and names. Pure: a fold over the
steps of a trace (`m:witness_step_trace`), in its order.

A message is represented by the number of the step that sent it and a hash. So a state grows with the processes and messages in
transit at that point, not with the size of the messages.
""".

-export([new/1, brief/1, ended/1, step/3, size/1, pack/1, unpack/2, is_alive/2, entry/2, mailbox/2, links/2, monitors/2, names/1]).

-export_type([state/0, what/0, brief/0, pids/0]).

-doc """
What a process does in a step. `send`: `Receiver` is the process that gets it, 0 if it is not in the recording or does not exist;
`unsure`: the sender may have been killed before. `effect`: a signal, or output. `lost`: the process may have sent more.
""".
-type what() :: {born, witness_event:signature()}
              | {spawn, Child :: pos_integer(), witness_event:signature(), Tied :: [link | monitor]}
              | {send, To :: term(), Receiver :: non_neg_integer(), Msg :: term(), sure | unsure}
              | {recv, From :: pos_integer() | outside, Msg :: term()}
              | {exit, ended | killed, Reason :: term()}
              | {call, mfa(), Args :: [term()], Value :: term()}
              | {raise, mfa(), Args :: [term()], Class :: atom(), Reason :: term()}
              | {effect, mfa(), Args :: [term()]} | timeout | lost.

-doc """
The part of a step that a state is made of: a few words, whatever the size of messages, arguments and results. `told`: the process
that ended, or the monitor, that a message is about. `access`: a call on shared memory, with its place in their order.
""".
-type brief() :: born | {spawn, Child :: pos_integer(), Tied :: [link | monitor]}
               | {send, Receiver :: non_neg_integer(), Hash :: non_neg_integer()}
               | {recv, From :: pos_integer() | outside, Hash :: non_neg_integer(),
                  Told :: {'EXIT', pid()} | {'DOWN', reference()} | none}
               | {exit, ended | killed, normal | other} | {call, mfa(), Args :: [term()], Value :: term()}
                   | {effect, mfa(), Args :: [term()]}
               | {access, [witness_step_shared:access()], Begin :: non_neg_integer(), End :: non_neg_integer()} | timeout | other.

%% alive: for each process its last entry, its last step, and the step of its last input: its birth, or a message that it has
%% taken. boxes: for a receiver and a sender the messages in transit: those with the earliest first, then those with the latest
%% first. ties: the processes that a process is linked with. signals: the last step that may have ended a process: an exit signal,
%% or the end of a linked process.
-record(state, {ids :: #{pid() => pos_integer()},
                pids :: #{pos_integer() => pid()},
                alive = #{} :: #{pos_integer() => {Entry :: non_neg_integer(), Last :: pos_integer(), Heard :: pos_integer()}},
                boxes = #{} :: #{pos_integer() => #{pos_integer() => {[message()], [message()]}}},
                waiting = 0 :: non_neg_integer(),
                ties = #{} :: #{pos_integer() => #{pid() => []}},
                monitors = #{} :: #{pos_integer() => #{reference() => term()}},
                signals = #{} :: #{pos_integer() => pos_integer()},
                names = #{} :: #{atom() => pos_integer()}}).

-type message() :: {Step :: pos_integer(), Hash :: non_neg_integer()}.

-opaque state() :: #state{}.

-doc "The pids of the processes of a recording.".
-type pids() :: #{pos_integer() => pid()}.

-doc "The state before the first step.".
-spec new(pids()) -> state().
new(Pids) -> #state{ids = #{Pid => Id || Id := Pid <- Pids}, pids = Pids}.

-doc "The state without the pids, as bytes.".
-spec pack(state()) -> binary().
pack(S) -> term_to_binary(S#state{ids = #{}, pids = #{}}, [{compressed, 1}]).

-doc "The state of these bytes, with the pids of another one.".
-spec unpack(binary(), state()) -> state().
unpack(Bytes, #state{ids = Ids, pids = Pids}) -> (witness_event_external:decode(Bytes))#state{ids = Ids, pids = Pids}.

-doc "The process that has ended, if a message from outside reports that: of a link, or of a monitor.".
-spec ended(term()) -> pid() | none.
ended({'EXIT', Pid, _}) when is_pid(Pid) -> Pid;
ended({'DOWN', _, process, Pid, _}) when is_pid(Pid) -> Pid;
ended(_) -> none.

-doc "The part of a step that `step/3` needs.".
-spec brief(what()) -> brief().
brief({born, _}) -> born;
brief({spawn, Child, _, Tied}) -> {spawn, Child, Tied};
%% The recording has the contents of messages from links, monitors and the like, whichever process may have sent such a message.
brief({send, _, _, {'EXIT', _, _}, _}) -> other;
brief({send, _, _, {'DOWN', _, _, _, _}, _}) -> other;
brief({send, _, _, {spawn_reply, _, _, _}, _}) -> other;
brief({send, _, Receiver, Msg, _}) -> {send, Receiver, erlang:phash2(Msg)};
brief({recv, From, Msg}) ->
    {recv, From, erlang:phash2(Msg), case Msg of
        {'EXIT', Pid, _} when is_pid(Pid) -> {'EXIT', Pid};
        {'DOWN', Ref, _, _, _} when is_reference(Ref) -> {'DOWN', Ref};
        _ -> none
    end};
brief({exit, How, normal}) -> {exit, How, normal};
brief({exit, How, _}) -> {exit, How, other};
%% No state depends on timers and timeouts, but causes do. The message of a timer is there as its hash.
brief({call, {erlang, send_after, _} = MFA, [_, _, Msg | _], Ref}) -> {call, MFA, [erlang:phash2(Msg)], Ref};
brief(timeout) -> timeout;
brief({call, {erlang, Function, _} = MFA, Args, Value}) ->
    case kept(Function) of
        true -> {call, MFA, Args, Value};
        result -> {call, MFA, [], Value};
        false -> other
    end;
brief({effect, {erlang, Function, _} = MFA, Args}) ->
    case kept(Function) of
        true -> {effect, MFA, Args};
        first -> {effect, MFA, lists:sublist(Args, 1)};
        _ -> other
    end;
brief(_) -> other.

kept(Function) when Function =:= link; Function =:= unlink; Function =:= monitor; Function =:= demonitor; Function =:= register;
                    Function =:= unregister; Function =:= cancel_timer -> true;
kept(Function) when Function =:= spawn_monitor; Function =:= spawn_opt; Function =:= start_timer -> result;
kept(Function) when Function =:= exit; Function =:= exit_signal -> first;
kept(_) -> false.

-doc """
The state behind a step, and the step that is its cause. For a message that is taken it is the step that sent it, otherwise the
step of the last input of the process. 0: it is not known.
""".
-spec step(pos_integer(), {Id :: pos_integer(), Entry :: non_neg_integer(), brief()}, state()) ->
    {Cause :: non_neg_integer(), state()}.
step(N, {Id, Entry, born}, S) -> {0, alive(Id, {Entry, N, N}, S)};
step(N, {Id, Entry, What}, #state{alive = Alive} = S0) ->
    #{Id := {_, _, Heard}} = Alive,
    {Cause, S} = apply_step(What, N, Id, Heard, S0),
    Now = case What of {recv, _, _, _} -> N; _ -> Heard end,
    case What of
        {exit, _, _} -> {Cause, apply_exit(Id, S)};
        _ -> {Cause, alive(Id, {Entry, N, Now}, S)}
    end.

alive(Id, Place, #state{alive = Alive} = S) -> S#state{alive = Alive#{Id => Place}}.

apply_step({spawn, Child, Tied}, N, Id, Heard, S) ->
    Born = alive(Child, {0, N, N}, S),
    {Heard, case lists:member(link, Tied) of true -> link_both(Id, pid(Child, S), Born); false -> Born end};
apply_step({send, Receiver, Hash}, N, Id, Heard, S) -> {Heard, add_message(Receiver, Id, {N, Hash}, S)};
apply_step({recv, From, Hash, Told}, _, Id, Heard, S) ->
    {Sent, S1} = take_message(Id, case From of outside -> Id; _ -> From end, Hash, S),
    {case {From, Sent} of {outside, 0} -> Heard; _ -> Sent end, apply_notice(Told, Id, S1)};
apply_step({call, MFA, Args, Value}, _, Id, Heard, S) -> {Heard, apply_call(MFA, Args, Value, Id, S)};
apply_step({effect, {erlang, Exit, _}, [Pid | _]}, N, _, Heard, #state{ids = Ids} = S) when Exit =:= exit; Exit =:= exit_signal ->
    {Heard, case Ids of #{Pid := Other} -> note_signal(Other, N, S); #{} -> S end};
apply_step({exit, How, Reason}, N, Id, Heard, #state{ids = Ids, ties = Ties, signals = Signals} = S) ->
    Tied = [Other || Reason =/= normal, Pid := _ <- maps:get(Id, Ties, #{}), #{Pid := Other} <- [Ids]],
    {case Signals of #{Id := Signal} when How =:= killed -> Signal; #{} -> Heard end,
     lists:foldl(fun(Other, A) -> note_signal(Other, N, A) end, S, Tied)};
apply_step({effect, MFA, Args}, _, Id, Heard, S) -> {Heard, apply_call(MFA, Args, true, Id, S)};
apply_step(_, _, _, Heard, S) -> {Heard, S}.

note_signal(Id, N, #state{alive = Alive, signals = Signals} = S) when is_map_key(Id, Alive) ->
    S#state{signals = Signals#{Id => N}};
note_signal(_, _, S) -> S.

%% --- messages --------------------------------------------------------------------

add_message(To, From, Message, #state{alive = Alive, boxes = Boxes, waiting = Waiting} = S) when is_map_key(To, Alive) ->
    Box = maps:get(To, Boxes, #{}),
    {Out, In} = maps:get(From, Box, {[], []}),
    S#state{boxes = Boxes#{To => Box#{From => {Out, [Message | In]}}}, waiting = Waiting + 1};
add_message(_, _, _, S) -> S.

take_message(To, From, Hash, #state{boxes = Boxes, waiting = Waiting} = S) ->
    case Boxes of
        #{To := #{From := {Out, In}} = Box} ->
            case first(Hash, Out, In, []) of
                none -> {0, S};
                {Step, {[], []}} -> {Step, S#state{boxes = remove_channel(To, From, Box, Boxes), waiting = Waiting - 1}};
                {Step, Left} -> {Step, S#state{boxes = Boxes#{To := Box#{From := Left}}, waiting = Waiting - 1}}
            end;
        #{} -> {0, S}
    end.

remove_channel(To, From, Box, Boxes) when map_size(Box) =:= 1, is_map_key(From, Box) -> maps:remove(To, Boxes);
remove_channel(To, From, Box, Boxes) -> Boxes#{To := maps:remove(From, Box)}.

first(Hash, [{Step, Hash} | Out], In, Passed) -> {Step, {lists:reverse(Passed, Out), In}};
first(Hash, [Other | Out], In, Passed) -> first(Hash, Out, In, [Other | Passed]);
first(_, [], [], _) -> none;
first(Hash, [], In, Passed) -> first(Hash, lists:reverse(In), [], Passed).

%% --- links, monitors, names ------------------------------------------------------

apply_notice({'EXIT', Pid}, Id, S) -> unlink_both(Id, Pid, S);
apply_notice({'DOWN', Ref}, Id, S) -> remove_monitor(Id, Ref, S);
apply_notice(none, _, S) -> S.

apply_call({erlang, link, _}, [Pid | _], true, Id, S) when is_pid(Pid) -> link_both(Id, Pid, S);
apply_call({erlang, unlink, _}, [Pid], _, Id, S) when is_pid(Pid) -> unlink_both(Id, Pid, S);
apply_call({erlang, monitor, _}, [_, Item | _], Ref, Id, S) when is_reference(Ref) -> add_monitor(Id, Ref, Item, S);
apply_call({erlang, demonitor, _}, [Ref | _], _, Id, S) -> remove_monitor(Id, Ref, S);
apply_call({erlang, Spawn, _}, _, {Pid, Ref}, Id, S) when Spawn =:= spawn_monitor; Spawn =:= spawn_opt ->
    add_monitor(Id, Ref, Pid, S);
apply_call({erlang, register, _}, [Name, Pid], true, _, #state{ids = Ids, names = Names} = S) ->
    case Ids of
        #{Pid := Owner} -> S#state{names = Names#{Name => Owner}};
        #{} -> S
    end;
apply_call({erlang, unregister, _}, [Name], true, _, #state{names = Names} = S) -> S#state{names = maps:remove(Name, Names)};
apply_call(_, _, _, _, S) -> S.

link_both(Id, Pid, #state{ties = Ties} = S) ->
    Own = S#state{ties = add_link(Id, Pid, Ties)},
    case S#state.ids of
        #{Pid := Other} when is_map_key(Other, S#state.alive) -> Own#state{ties = add_link(Other, pid(Id, S), Own#state.ties)};
        #{} -> Own
    end.

add_link(Id, Pid, Ties) -> Ties#{Id => (maps:get(Id, Ties, #{}))#{Pid => []}}.

unlink_both(Id, Pid, #state{ids = Ids, ties = Ties} = S) ->
    Own = remove_link(Id, Pid, Ties),
    S#state{ties = case Ids of #{Pid := Other} -> remove_link(Other, pid(Id, S), Own); #{} -> Own end}.

remove_link(Id, Pid, Ties) ->
    case Ties of
        #{Id := #{Pid := _} = Tied} when map_size(Tied) =:= 1 -> maps:remove(Id, Ties);
        #{Id := Tied} -> Ties#{Id := maps:remove(Pid, Tied)};
        #{} -> Ties
    end.

add_monitor(Id, Ref, Item, #state{monitors = Monitors} = S) ->
    S#state{monitors = Monitors#{Id => (maps:get(Id, Monitors, #{}))#{Ref => Item}}}.

remove_monitor(Id, Ref, #state{monitors = Monitors} = S) ->
    case Monitors of
        #{Id := #{Ref := _} = Own} when map_size(Own) =:= 1 -> S#state{monitors = maps:remove(Id, Monitors)};
        #{Id := Own} -> S#state{monitors = Monitors#{Id := maps:remove(Ref, Own)}};
        #{} -> S
    end.

apply_exit(Id, #state{alive = Alive, boxes = Boxes, waiting = Waiting, ties = Ties, monitors = Monitors, names = Names} = S0) ->
    S = lists:foldl(fun(Pid, A) -> unlink_both(Id, Pid, A) end, S0, maps:keys(maps:get(Id, Ties, #{}))),
    Dropped = maps:fold(fun(_, {Out, In}, N) -> N + length(Out) + length(In) end, 0, maps:get(Id, Boxes, #{})),
    S#state{alive = maps:remove(Id, Alive), boxes = maps:remove(Id, Boxes), waiting = Waiting - Dropped,
            monitors = maps:remove(Id, Monitors), signals = maps:remove(Id, S0#state.signals),
            names = case lists:member(Id, maps:values(Names)) of
                true -> maps:filter(fun(_, Owner) -> Owner =/= Id end, Names);
                false -> Names
            end}.

pid(Id, #state{pids = Pids}) -> map_get(Id, Pids).

%% --- queries ---------------------------------------------------------------------

-doc "The approximate size: live processes, and messages in transit.".
-spec size(state()) -> non_neg_integer().
size(#state{alive = Alive, waiting = Waiting}) -> map_size(Alive) + Waiting.

-spec is_alive(pos_integer(), state()) -> boolean().
is_alive(Id, #state{alive = Alive}) -> is_map_key(Id, Alive).

-doc "How many entries of its log a process has passed, if it is alive.".
-spec entry(pos_integer(), state()) -> non_neg_integer() | none.
entry(Id, #state{alive = Alive}) -> case Alive of #{Id := {Entry, _, _}} -> Entry; #{} -> none end.

-doc "The steps that sent the messages that a process has not taken, in their order.".
-spec mailbox(pos_integer(), state()) -> [pos_integer()].
mailbox(Id, #state{boxes = Boxes}) ->
    lists:sort([Step || {Out, In} <- maps:values(maps:get(Id, Boxes, #{})), {Step, _} <- Out ++ In]).

-doc "The processes that a process is linked with.".
-spec links(pos_integer(), state()) -> [pid()].
links(Id, #state{ties = Ties}) -> lists:sort(maps:keys(maps:get(Id, Ties, #{}))).

-doc "What a process monitors.".
-spec monitors(pos_integer(), state()) -> [{reference(), term()}].
monitors(Id, #state{monitors = Monitors}) -> lists:sort(maps:to_list(maps:get(Id, Monitors, #{}))).

-doc "Registered names.".
-spec names(state()) -> #{atom() => pos_integer()}.
names(#state{names = Names}) -> Names.
