-module(witness_weave_loader).
-moduledoc """
Loads woven modules in the place of the original ones, keeps the object code of the originals, and restores them when their
owner asks for it or has ended, for whatever reason.

The VM holds two versions of a module. If a third is loaded, a process that runs the older one is killed.
That never happens here:

- Modules with an older version that is in use are not loaded. All modules of a request are loaded, or none.
- Modules with original code that is in use, as the older version by then, cannot be restored yet. Their woven code
  stays, but no process in it is observed once its run has ended. Restoring is tried again at every request, and after
  1 s, 2 s and so on up to every 60 s, until it succeeds. `restore/1` and the log say which modules these are.

- Woven code that has been replaced is not purged. Funs that were made in it may be in tables, persistent terms and
  mailboxes, where the VM does not look for them. They go on to work as the older version, until the module is loaded again.

A module has one owner at a time. The same woven code can change its owner while it waits to be restored.

What has to be restored is in a table that the supervisor owns, so that it outlives this process.
""".
-behaviour(gen_server).

-export([new_table/0, start_link/0, load/2, restore/1, status/0, original/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-include_lib("kernel/include/logger.hrl").

%% `waiting`: the owner has released the module, and it could not be restored yet.
%% `_' is for patterns of the table.
-record(woven, {module :: module(), owner :: pid() | '_', waiting = false :: boolean() | '_',
                file :: file:filename() | '_', original :: binary() | '_', md5 :: binary() | '_'}).

%% Milliseconds. To check whether code is in use takes time in proportion to the number of processes.
-define(FIRST_RETRY_MS, 1000).
-define(MAX_RETRY_MS, 60_000).

-doc "Makes the table of what has to be restored. Its owner is the caller.".
-spec new_table() -> ok.
new_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {keypos, #woven.module}]),
    ok.

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Loads modules for an owner, a process of this node: all of them, or none.".
-spec load([witness_weave:prepared()], Owner :: pid()) -> ok | {error, witness_weave_error:reason()}.
load(Prepared, Owner) when node(Owner) =:= node() -> call({load, Prepared, Owner}).

-doc """
Restores the modules of an owner.

`{in_use, Modules}`: the original code of these is in use, and they are restored as soon as it is not.
""".
-spec restore(Owner :: pid()) -> ok | {in_use, [module()]} | {error, not_started}.
restore(Owner) -> call({restore, Owner}).

-doc "The modules that are woven now, with their owners. Those that are `waiting` were released and are to be restored.".
-spec status() -> #{module() => {Owner :: pid(), loaded | waiting}} | {error, not_started}.
status() -> call(status).

-doc "The original object code of a module that is woven now.".
-spec original(module()) -> {ok, witness_weave:object()} | none.
original(Module) ->
    case ets:whereis(?MODULE) =/= undefined andalso ets:lookup(?MODULE, Module) of
        [#woven{file = File, original = Original}] -> {ok, {Module, File, Original}};
        _ -> none
    end.

call(Request) ->
    try
        gen_server:call(?MODULE, Request, infinity)
    catch
        exit:{noproc, _} -> {error, not_started}
    end.

%% The timer that runs while modules wait, and its next delay.
-type state() :: {none | reference(), pos_integer()}.

-doc false.
-spec init([]) -> {ok, state()}.
init([]) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(?MODULE),
    _ = [monitor(process, Owner) || Owner <- owners()],
    {ok, timer({none, ?FIRST_RETRY_MS})}.

%% A caller may know that an owner has ended before this process does.
-doc false.
-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(Request, _From, State) ->
    _ = [release_ended(Owner) || Owner <- owners(), has_ended(Owner)],
    _ = restore_all(waiting_modules()),
    {reply, reply(Request), timer(State)}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'DOWN', _, process, Owner, _}, State) ->
    ok = release_ended(Owner),
    {noreply, timer(State)};
handle_info({timeout, Timer, retry}, {Timer, Delay}) ->
    _ = restore_all(waiting_modules()),
    {noreply, timer({none, min(2 * Delay, ?MAX_RETRY_MS)})};
handle_info(_, State) ->
    {noreply, State}.

%% Witness is stopped, so there is no further attempt.
-doc false.
-spec terminate(term(), state()) -> ok.
terminate(_, _) -> lists:foreach(fun release/1, owners()).

timer({none, Delay}) ->
    case waiting_modules() of
        [] -> {none, ?FIRST_RETRY_MS};
        [_ | _] -> {erlang:start_timer(Delay, self(), retry), Delay}
    end;
timer(Running) ->
    Running.

owners() -> lists:usort([Owner || #woven{owner = Owner, waiting = false} <- ets:tab2list(?MODULE)]).

waiting_modules() -> ets:match_object(?MODULE, #woven{waiting = true, _ = '_'}).

has_ended(Owner) -> not is_process_alive(Owner).

reply({load, Prepared, Owner}) ->
    maybe
        false ?= has_ended(Owner),
        ok ?= check_all(fun available/1, Prepared),
        New = [P || #{module := Module} = P <- Prepared, not ets:member(?MODULE, Module)],
        _ = monitor(process, Owner),
        _ = [insert_owned(P, Owner) || P <- Prepared],
        ok ?= put_in_place(New)
    else
        true -> {error, {ended, Owner}};
        Error -> Error
    end;
reply({restore, Owner}) ->
    case lists:sort([Module || #woven{module = Module} <- release(Owner)]) of
        [] -> ok;
        Left -> {in_use, Left}
    end;
reply(status) ->
    #{Module => {Owner, case Waiting of true -> waiting; false -> loaded end}
      || #woven{module = Module, owner = Owner, waiting = Waiting} <- ets:tab2list(?MODULE)}.

%% Loading

available(#{module := Module, woven := Woven, original := Original}) ->
    case {ets:lookup(?MODULE, Module), loaded_md5(Module), code:module_md5(Original)} of
        {[#woven{waiting = false, owner = Owner}], _, _} -> {error, {owned, Module, Owner}};
        {[#woven{md5 = Md5}], _, _} ->
            case code:module_md5(Woven) of
                Md5 -> ok;
                _ -> {error, {in_use, Module}}
            end;
        {[], none, _} -> ok;
        {[], Md5, Md5} -> ok;
        {[], _, _} -> {error, {differs, Module}}
    end.

%% Modules are in the table before they are loaded. If this process is killed in between, entries of modules that are not loaded
%% are deleted.
put_in_place(Prepared) ->
    maybe
        ok ?= check_all(fun(#{module := Module}) -> unused(Module) end, Prepared),
        ok ?= code:atomic_load([{Module, File, Woven} || #{module := Module, file := File, woven := Woven} <- Prepared])
    else
        {error, Why} ->
            _ = [ets:delete(?MODULE, Module) || #{module := Module} <- Prepared],
            {error, case is_list(Why) of true -> {not_loaded, Why}; false -> Why end}
    end.

unused(Module) ->
    case code:soft_purge(Module) of
        true -> ok;
        false -> {error, {in_use, Module}}
    end.

insert_owned(#{module := Module, file := File, original := Original, woven := Woven}, Owner) ->
    ets:insert(?MODULE, #woven{module = Module, owner = Owner, file = File, original = Original,
                               md5 = code:module_md5(Woven)}).

check_all(_, []) -> ok;
check_all(Check, [Prepared | Rest]) ->
    case Check(Prepared) of
        ok -> check_all(Check, Rest);
        Error -> Error
    end.

%% The digest of the loaded module.
loaded_md5(Module) ->
    case erlang:module_loaded(Module) of
        true -> Module:module_info(md5);
        false -> none
    end.

%% Restoring

%% Nothing else tells which modules an owner has left that has not restored them.
release_ended(Owner) ->
    Loaded = [Module || #woven{module = Module} <- ets:match_object(?MODULE, #woven{owner = Owner, waiting = false, _ = '_'})],
    case [Module || #woven{module = Module} <- release(Owner), lists:member(Module, Loaded)] of
        [] -> ok;
        Left -> ?LOG_NOTICE(#{text => "the original code of modules is in use: they stay woven until it is not",
                              modules => Left}, #{domain => [witness]})
    end.

%% Returns the modules of the owner that have to wait.
release(Owner) ->
    Modules = [Woven#woven{waiting = true} || Woven <- ets:match_object(?MODULE, #woven{owner = Owner, _ = '_'})],
    true = ets:insert(?MODULE, Modules),
    restore_all(Modules).

restore_all(Modules) -> [Woven || Woven <- Modules, not restore_module(Woven)].

%% A version that other code has loaded or deleted since is left alone.
restore_module(#woven{module = Module, md5 = Md5, file = File, original = Original}) ->
    case loaded_md5(Module) of
        Md5 ->
            case code:soft_purge(Module) andalso code:load_binary(Module, File, Original) of
                {module, Module} -> ets:delete(?MODULE, Module);
                _ -> false
            end;
        _ ->
            ets:delete(?MODULE, Module)
    end.
