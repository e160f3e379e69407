-module(witness_search_applications).
-moduledoc """
The applications of a controlled program, and what keeps them: a controlled process that runs OTP's `application_controller`.

The real controller of this VM never knows of the program's applications. When the program first looks for a process of that name, the
world has a process without a parent that has the state which the real one had before the first run (`m:witness_search_world`). It runs the
same module, which is woven. So all that an application does and needs, from its master to its environment, is done by OTP's own code in
steps of the schedule, and a run that starts no application has no such process. What the controller writes into its table `ac_tab`, which
belongs to the real one, is restored after the run (`m:witness_search_memory`).

Applications that were started before, such as `kernel`, run as ever. The controlled controller has them as applications without
processes, so it cannot end their masters.
""".

-export([prepare/1, find/2, find_table/2, first_call/2, call/2, serve/2, ending/0]).

-export_type([server/0]).

-define(NAME, application_controller).
-define(GLOBAL, global_name_server).

-doc "The call with which a controlled server starts, and the named tables that it has from then on.".
-type server() :: {witness_search_world:start(), Tables :: [atom()]}.

-doc """
Starts the applications that stay outside, and sets parameters of all. The result has the servers that a run has when the program first
needs them.
""".
-spec prepare(#{environment => [{atom(), [{atom(), term()}]}], outside => [atom()], any() => any()}) ->
    {ok, #{atom() => server()}} | {error, {not_started, atom(), term()}}.
prepare(Job) ->
    ok = application:set_env(maps:get(environment, Job, []), [{persistent, true}]),
    case start(maps:get(outside, Job, [])) of
        ok ->
            {ok, (global())#{?NAME => {controller(), []}, timer_server => {server(timer, timer_server), []}}};
        {App, Reason} -> {error, {not_started, App, Reason}}
    end.

%% The real one makes way for that of a run: both need the same names of tables.
global() ->
    case whereis(?GLOBAL) of
        Pid when is_pid(Pid), node() =:= nonode@nohost ->
            Tables = tables(Pid),
            ok = supervisor:terminate_child(kernel_sup, ?GLOBAL),
            #{?GLOBAL => {server(global, ?GLOBAL), Tables}};
        _ -> #{}
    end.

tables(Owner) -> [Table || Table <- ets:all(), is_atom(Table), ets:info(Table, owner) =:= Owner].

server(Module, Name) -> {proc_lib, init_p, [whereis(kernel_sup), [], ?MODULE, serve, [Module, Name]]}.

start([]) -> ok;
start([App | Apps]) ->
    case application:ensure_all_started(App) of
        {ok, _} -> start(Apps);
        {error, Reason} -> {App, Reason}
    end.

%% It starts with the state of the real one.
controller() ->
    State = without_pids(sys:get_state(?NAME)),
    {proc_lib, init_p, [whereis(init), [], gen_server, enter_loop, [?NAME, [], State, {local, ?NAME}]]}.

%% The masters of applications outside. A library has `undefined' there too.
without_pids(Pid) when is_pid(Pid) -> undefined;
without_pids([Head | Tail]) -> [without_pids(Head) | without_pids(Tail)];
without_pids(Tuple) when is_tuple(Tuple) -> list_to_tuple(without_pids(tuple_to_list(Tuple)));
without_pids(Term) -> Term.

-doc """
The program looks for a process of this name, and has none itself. `here`: now it has one; `none`: neither has this VM; or the process
outside.
""".
-spec find(atom(), witness_search_process:control()) -> here | none | pid() | port().
find(Name, C) ->
    case persistent_term:get(witness_search) of
        #{servers := #{Name := {Start, _}}} ->
            case witness_search_process:perform({adopt, Name, Start, whereis(user)}, C) of
                true -> here;
                false -> none
            end;
        #{} ->
            case whereis(Name) of
                undefined -> none;
                Found -> Found
            end
    end.

-doc "The program uses this table, which this VM does not have: if it is one of a server, the run has the server now.".
-spec find_table(atom(), witness_search_process:control()) -> ok.
find_table(Table, C) ->
    #{servers := Servers} = persistent_term:get(witness_search),
    _ = [find(Name, C) || Name := {_, Tables} <- Servers, lists:member(Table, Tables)],
    ok.

-doc false.
-spec serve(module(), atom()) -> no_return().
serve(Module, Name) ->
    {ok, State} = Module:init([]),
    gen_server:enter_loop(Module, [], State, {local, Name}).

-doc "The first call of a run that starts these applications first.".
-spec first_call([atom()], witness_search_world:start()) -> witness_search_world:start().
first_call([], Run) -> Run;
first_call(Apps, Run) -> {?MODULE, call, [Apps, Run]}.

-doc false.
-spec call([atom()], witness_search_world:start()) -> term().
call(Apps, {Module, Function, Args}) ->
    case start(Apps) of
        ok -> apply(Module, Function, Args);
        {App, Reason} -> exit({application_not_started, App, Reason})
    end.

-doc "The message by which the controller, as at the end of its VM, stops all applications, the last one first.".
-spec ending() -> term().
ending() -> {'EXIT', whereis(init), shutdown}.
