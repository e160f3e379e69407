-module(witness_sys_fragile).
-moduledoc """
`gen_server`s that fail: while they start, in a call, in a cast, by an exit from outside; and a starter that sees
the errors.
""".
-behaviour(gen_server).

-export([main/0, caller/1, init/1, handle_call/3, handle_cast/2]).

-spec main() -> ok.
main() ->
    {error, refused} = gen_server:start(?MODULE, {stop, refused}, []),
    ignore = gen_server:start(?MODULE, ignore, []),
    {error, {badarith, _}} = gen_server:start(?MODULE, {divide, 0}, []),
    Callers = [spawn_monitor(?MODULE, caller, [How]) || How <- [{divide, 0}, stop, kill, no_reply]],
    _ = [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Callers],
    ok.

-doc "Starts a server and sees how a call to it ends.".
-spec caller(term()) -> ok.
caller(How) ->
    {ok, Server} = gen_server:start(?MODULE, {serve, How}, []),
    _ = How =:= kill andalso exit(Server, kill),
    try gen_server:call(Server, How) of
        Answer -> Answer
    catch
        exit:{_, {gen_server, call, _}} -> ok
    end.

-spec init(term()) -> {ok, term()} | {stop, term()} | ignore.
init({stop, Reason}) -> {stop, Reason};
init(ignore) -> ignore;
init({divide, By}) -> {ok, 1 / By};
init({serve, How}) -> {ok, How}.

-spec handle_call(term(), gen_server:from(), term()) -> term().
handle_call({divide, By}, _, State) -> {reply, 1 / By, State};
handle_call(stop, _, State) -> {stop, {shutdown, asked}, ok, State};
handle_call(no_reply, _, State) -> gen_server:cast(self(), give_up), {noreply, State}.

-spec handle_cast(give_up, term()) -> {stop, given_up, term()}.
handle_cast(give_up, State) -> {stop, given_up, State}.
