-module(witness_run_attach).
-moduledoc """
Which of the processes that run already are to be observed.

An application consists of its supervision tree and all other processes that it has spawned: those with its application
master as group leader, which is inherited, and those that have its top supervisor among their ancestors. No process of
the application is called, so its processes receive no additional message.

## Errors

`{attach, Text}`: there is no such process, or it belongs to Witness.
""".

-export([is_attached/1, chosen/2]).

-export_type([target/0]).

-doc "A process, a registered name, or an application that is running.".
-type target() :: pid() | atom() | {application, atom()}.

-doc "Whether a system runs already.".
-spec is_attached(System :: term()) -> boolean().
is_attached(node) -> true;
is_attached({attach, _}) -> true;
is_attached(_) -> false.

-doc "Returns a predicate: whether a process is one of those that were named. It may be called again as processes come and go.".
-spec chosen([target()], Own :: fun((pid()) -> boolean())) ->
    {ok, fun((pid()) -> boolean())} | {error, {attach, unicode:chardata()}}.
chosen(Targets, Own) ->
    try [target(Target, Own) || Target <- Targets] of
        Found ->
            Pids = #{P => [] || {process, P} <- Found},
            Trees = [{Master, Top} || {application, Master, Top} <- Found],
            {ok, fun(P) -> is_map_key(P, Pids) orelse Trees =/= [] andalso belongs(P, Trees) andalso not Own(P) end}
    catch
        throw:Text -> {error, {attach, Text}}
    end.

target({application, App}, _) ->
    case application_controller:get_master(App) of
        Master when is_pid(Master) ->
            case application_master:get_child(Master) of
                {Top, _} when is_pid(Top) -> {application, Master, names(Top)};
                _ -> {application, Master, []}
            end;
        undefined ->
            Running = [atom_to_binary(A) || {A, _, _} <- application:which_applications(),
                                            is_pid(application_controller:get_master(A))],
            throw(io_lib:format("the application ~tp is not running, or has no processes; there are ~ts",
                                [App, lists:join(", ", lists:sort(Running))]))
    end;
target(Name, Own) when is_atom(Name) ->
    case whereis(Name) of
        P when is_pid(P) -> process(P, Name, Own);
        _ -> throw(io_lib:format("no process is registered as ~tp", [Name]))
    end;
target(P, Own) ->
    is_process_alive(P) orelse throw(io_lib:format("there is no process ~tp", [P])),
    process(P, P, Own).

process(P, Shown, Own) ->
    Own(P) andalso throw(io_lib:format("~tp is a process of Witness", [Shown])),
    {process, P}.

%% The process dictionary has ancestors by name, if they have one.
names(P) ->
    case process_info(P, registered_name) of
        {registered_name, Name} -> [P, Name];
        _ -> [P]
    end.

belongs(P, Trees) ->
    case process_info(P, [group_leader, {dictionary, '$ancestors'}]) of
        undefined -> false;
        [{group_leader, Leader}, {_, Ancestors}] ->
            lists:any(fun({Master, Top}) ->
                P =:= Master orelse Leader =:= Master
                    orelse is_list(Ancestors) andalso lists:any(fun(A) -> lists:member(A, Top) end, Ancestors)
            end, Trees)
    end.
