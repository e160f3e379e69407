-module(witness_sys_door).
-moduledoc """
Doors with a code lock, each a `gen_statem` with a visitor of its own. The right button opens the door, any other
is refused; walking through closes it again. Walking into a locked door is postponed until it is open. A `jammed`
door opens with every button.
""".
-behaviour(gen_statem).

-export([doors/2, visitor/1, init/1, callback_mode/0, locked/3, open/3]).

-spec doors(pos_integer(), ok | jammed) -> ok.
doors(N, How) ->
    Visitors = [spawn_monitor(?MODULE, visitor, [How]) || _ <- lists:seq(1, N)],
    _ = [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Visitors],
    ok.

-spec visitor(ok | jammed) -> ok.
visitor(How) ->
    {ok, Door} = gen_statem:start_link(?MODULE, {How, 7}, []),
    _ = [gen_statem:call(Door, {button, B}) || B <- [3, 7, 3, 5]],
    ok = gen_statem:cast(Door, walk),
    _ = gen_statem:call(Door, {button, 7}),
    open_or_locked(gen_statem:call(Door, state)),
    gen_statem:stop(Door).

open_or_locked(open) -> ok;
open_or_locked(locked) -> ok.

-spec callback_mode() -> state_functions.
callback_mode() -> state_functions.

-spec init({ok | jammed, integer()}) -> {ok, locked, term()}.
init(Data) -> {ok, locked, Data}.

-spec locked(term(), term(), term()) -> term().
locked({call, From}, {button, Code}, {_, Code} = Data) -> {next_state, open, Data, [{reply, From, open}]};
locked({call, From}, {button, _}, {jammed, _} = Data) -> {next_state, open, Data, [{reply, From, open}]};
locked({call, From}, {button, _}, _) -> {keep_state_and_data, [{reply, From, refused}]};
locked({call, From}, state, _) -> {keep_state_and_data, [{reply, From, locked}]};
locked(cast, walk, _) -> {keep_state_and_data, [postpone]}.

-spec open(term(), term(), term()) -> term().
open(cast, walk, Data) -> {next_state, locked, Data};
open({call, From}, {button, _}, Data) -> {next_state, locked, Data, [{reply, From, closed}]};
open({call, From}, state, _) -> {keep_state_and_data, [{reply, From, open}]}.
