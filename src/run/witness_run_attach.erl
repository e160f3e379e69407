-module(witness_run_attach).
-moduledoc """
Which of the processes that run already are to be observed.

An application consists of its supervision tree and all other processes that it has spawned: those with its application
master as group leader, which is inherited, and those that have its top supervisor among their ancestors. No process of
the application is called, so its processes receive no additional message.

An error names a process that is not there, or that belongs to Witness.
""".

-export([is_attached/1, is_partial/1, chosen_predicate/2, own_predicate/1, system_predicate/1, servers/1, format_error/1]).

-export_type([target/0, error/0]).

-doc "A process, a registered name, or an application that is running.".
-type target() :: pid() | atom() | {application, atom()}.

-doc "Why processes cannot be observed, as text.".
-type error() :: {?MODULE, unicode:chardata()}.

%% Of a name in an error.
-define(NAME_CHARS, 200).

-doc "Whether a system runs already.".
-spec is_attached(System :: term()) -> boolean().
is_attached(node) -> true;
is_attached({attach, _}) -> true;
is_attached(_) -> false.

-doc "Whether there are processes besides those of the run that may belong to the same system: the run has not started it.".
-spec is_partial(System :: term()) -> boolean().
is_partial({children, _}) -> true;
is_partial(System) -> is_attached(System).

-doc "Returns a predicate: whether a process is one of those that were named. It may be called again as processes come and go.".
-spec chosen_predicate([target()], Own :: fun((pid()) -> boolean())) ->
    {ok, fun((pid()) -> boolean())} | {error, error()}.
chosen_predicate(Targets, Own) ->
    try [resolve_target(Target, Own) || Target <- Targets] of
        Found ->
            Pids = #{P => [] || {process, P} <- Found},
            Trees = [{Master, Top} || {application, Master, Top} <- Found],
            {ok, fun(P) -> is_map_key(P, Pids) orelse Trees =/= [] andalso is_in_trees(P, Trees) andalso not Own(P) end}
    catch
        throw:Text -> {error, {?MODULE, Text}}
    end.

resolve_target({application, App}, _) ->
    case application_controller:get_master(App) of
        Master when is_pid(Master) ->
            case application_master:get_child(Master) of
                {Top, _} when is_pid(Top) -> {application, Master, pid_and_name(Top)};
                _ -> {application, Master, []}
            end;
        undefined ->
            Running = [atom_to_binary(A) || {A, _, _} <- application:which_applications(),
                                            is_pid(application_controller:get_master(A))],
            throw(io_lib:format("the application ~tp is not running, or has no processes; there are ~ts",
                                [App, lists:join(", ", lists:sort(Running))]))
    end;
resolve_target(Name, Own) when is_atom(Name) ->
    case whereis(Name) of
        P when is_pid(P) -> check_process(P, witness_text:name(Name, ?NAME_CHARS), Own);
        _ -> throw(io_lib:format("no process is registered as ~ts", [witness_text:name(Name, ?NAME_CHARS)]))
    end;
resolve_target(P, Own) ->
    is_process_alive(P) orelse throw(io_lib:format("there is no process ~tp", [P])),
    check_process(P, io_lib:format("~tp", [P]), Own).

check_process(P, Shown, Own) ->
    Own(P) andalso throw(io_lib:format("~ts is a process of Witness", [Shown])),
    {process, P}.

%% The process dictionary has ancestors by name, if they have one.
pid_and_name(P) ->
    case process_info(P, registered_name) of
        {registered_name, Name} -> [P, Name];
        _ -> [P]
    end.

is_in_trees(P, Trees) ->
    case process_info(P, [group_leader, {dictionary, '$ancestors'}]) of
        undefined -> false;
        [{group_leader, Leader}, {_, Ancestors}] ->
            lists:any(fun({Master, Top}) ->
                P =:= Master orelse Leader =:= Master
                    orelse is_list(Ancestors) andalso lists:any(fun(A) -> lists:member(A, Top) end, Ancestors)
            end, Trees)
    end.

-doc """
Whether a process belongs to Witness: it runs a module of this application, whatever the modules are called here,
or it is one of the named processes. They are never observed.
""".
-spec own_predicate(#{unobserved := [pid()], _ => _}) -> fun((pid()) -> boolean()).
own_predicate(#{unobserved := Unobserved} = Options) ->
    Modules = case Options of
        #{modules := Here} -> Here;
        #{} ->
            {ok, Installed} = application:get_key(witness, modules),
            Installed
    end,
    fun(P) ->
            Calls = [proc_lib:translate_initial_call(P) | [MFA || {_, MFA} <- [process_info(P, initial_call)]]],
            lists:member(P, Unobserved)
                orelse lists:any(fun(Call) -> lists:member(module(Call), Modules) end, Calls)
    end.

-doc """
Whether an observed process belongs to the system that a run has started. If the run watches the whole node, these are the processes
with the system's group leader; the others are those of applications that it has started.
""".
-spec system_predicate(witness_options:options()) -> fun((pid()) -> boolean()).
system_predicate(#{scope := tree}) -> fun(_) -> true end;
system_predicate(#{system := {application, App}}) -> has_leader(application_controller:get_master(App));
system_predicate(#{group_leader := Leader}) -> has_leader(Leader).

%% Applications of OTP and Elixir that start no processes for a program, or those of a build tool.
-define(RUNTIME, [kernel, stdlib, compiler, sasl, crypto, runtime_tools, tools, elixir, logger, mix, ex_unit, iex, hex, witness]).

-doc """
The processes of this node that may start others for a system that calls them: those that `proc_lib` has started, without those of
the system itself, of Witness and of the run-time system.
""".
-spec servers(witness_options:options()) -> [pid()].
servers(#{system := System} = Options) ->
    Own = own_predicate(Options),
    Parents = case System of {children, Given} -> witness_instrument:parent_pids(Given); _ -> [] end,
    [P || P <- processes(), not lists:member(P, Parents), is_of_otp(P), not is_of_runtime(P), not Own(P)].

is_of_otp(P) ->
    case process_info(P, {dictionary, '$initial_call'}) of
        {_, {_, _, _}} -> true;
        _ -> false
    end.

is_of_runtime(P) ->
    case application:get_application(P) of
        {ok, App} -> lists:member(App, ?RUNTIME);
        undefined -> false
    end.

has_leader(Leader) -> fun(P) -> process_info(P, group_leader) =:= {group_leader, Leader} end.

module({supervisor, M, _}) -> M;
module({M, _, _}) -> M.

-doc "The text of an error.".
-spec format_error(unicode:chardata()) -> unicode:chardata().
format_error(Text) -> Text.
