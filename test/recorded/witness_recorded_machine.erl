-module(witness_recorded_machine).
-moduledoc "A state machine with time-outs of all kinds, postponed events and hibernation.".
-behaviour(gen_statem).

-import(witness_recorded, [message/2, content/1, spawned/1, either/1, ended/2]).

-export([events/0]).
-export([init/1, callback_mode/0, idle/3, busy/3]).

events() ->
    {ok, Machine} = Started = gen_statem:start(?MODULE, self(), []),
    either([[{spawn, Machine}, {message, Machine, {ack, Machine, Started}}]]),
    Me = self(),
    Clients = [spawned(fun() -> Me ! {answers, self(), client(Machine, I, 20, [])} end) || I <- [1, 2, 3]],
    Answers = [receive {answers, Client, List} = M -> message(Client, M), List end || Client <- Clients],
    Ref = monitor(process, Machine),
    Count = call(Machine, stop),
    receive {'DOWN', Ref, process, Machine, Reason} = Down -> content(Down), ended(Machine, Reason) end,
    {Count, erlang:phash2(Answers)}.

client(_, _, 0, Answers) -> Answers;
client(Machine, I, N, Answers) ->
    ok = gen_statem:cast(Machine, {note, self(), I}),
    client(Machine, I, N - 1, [call(Machine, get) | Answers]).

call(Machine, Request) ->
    Reply = gen_statem:call(Machine, Request),
    message(Machine, '_'),
    Reply.

init(Parent) ->
    witness_recorded:born(Parent),
    {ok, idle, 0, [{state_timeout, 2, work}]}.

callback_mode() -> state_functions.

idle(state_timeout, work, N) ->
    content({timeout, '_', state_timeout}),
    {next_state, busy, N + 1, [{timeout, 1, event}, {{timeout, named}, 3, late}]};
idle({call, {From, _} = Client}, get, N) ->
    message(From, '_'),
    {keep_state, N + 1, [{reply, Client, {idle, N}}]};
idle({call, {From, _} = Client}, stop, N) ->
    message(From, '_'),
    {stop_and_reply, normal, [{reply, Client, N}]};
idle({timeout, named}, late, N) ->
    content({timeout, '_', {timeout, named}}),
    {keep_state, N + 1000};
idle(cast, {note, From, _}, N) ->
    message(From, '_'),
    {keep_state, N + 1}.

busy({call, {From, _} = Client}, get, N) ->
    message(From, '_'),
    {keep_state, N + 1, [{reply, Client, {busy, N}}, hibernate]};
busy({call, {From, _} = Client}, stop, N) ->
    message(From, '_'),
    {stop_and_reply, normal, [{reply, Client, N}]};
busy(cast, {note, From, _}, N) ->
    message(From, '_'),
    {next_state, idle, N + 1, [{state_timeout, 1, work}]};
busy(timeout, event, N) ->
    content({timeout, '_', timeout}),
    {next_state, idle, N + 100, [{state_timeout, 1, work}]};
busy({timeout, named}, late, N) ->
    content({timeout, '_', {timeout, named}}),
    {keep_state, N + 1000}.
