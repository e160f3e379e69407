-module(witness_outline_origins).
-moduledoc """
Which process has spawned which, of those that run already.

The VM knows the parent of each process, even if the parent has ended. If the parent ended before it was seen here, an
ancestor beyond it is known for processes of OTP only, which keep their ancestors in their dictionary. This module sends no
message to a process, so it does not change what the process does. What was seen once is kept, so a process that ends between
two looks is still known as a parent.
""".

-export([new/0, add/2, of_process/2]).

-export_type([origins/0, origin/0]).

-doc """
The parent; or an ancestor, if those between have ended; `outside`: it is the first process of the node, or the boot script
or another node has spawned it; `unknown`: its parent has ended, and nothing is known of that parent.
""".
-type origin() :: pid() | {beyond, pid()} | outside | unknown.

-opaque origins() :: #{pid() => origin()}.

-spec new() -> origins().
new() -> #{}.

-doc "Adds those of these processes that are new and have not ended.".
-spec add([pid()], origins()) -> origins().
add(Processes, Known) ->
    New = [{P, direct_origin(Parent)} || P <- Processes, not is_map_key(P, Known), {parent, Parent} <- [process_info(P, parent)]],
    All = maps:merge(Known, maps:from_list(New)),
    Boot = boot(),
    lists:foldl(fun({P, Parent}, A) when Parent =:= Boot -> A#{P := outside};
                   ({P, _}, A) -> A#{P := ancestor_origin(P, A)}
                end, All, [Born || {_, Parent} = Born <- New, is_pid(Parent), not is_map_key(Parent, All)]).

%% The process that has run the boot script, which ends with it. It is in no group.
boot() ->
    case whereis(application_controller) of
        undefined -> none;
        Controller ->
            {parent, Boot} = process_info(Controller, parent),
            Boot
    end.

direct_origin(Parent) when is_pid(Parent), node(Parent) =:= node() -> Parent;
direct_origin(_) -> outside.

%% The first of the ancestors is the parent, by its name if it had one. The others are the ancestors of the parent.
ancestor_origin(P, Known) ->
    case process_info(P, {dictionary, '$ancestors'}) of
        {_, [_ | Ancestors]} -> first_known(Ancestors, Known);
        _ -> unknown
    end.

first_known([Name | Ancestors], Known) when is_atom(Name) -> first_known([whereis(Name) | Ancestors], Known);
first_known([P | _], Known) when is_map_key(P, Known) -> {beyond, P};
first_known([P | _], _) when is_pid(P), node(P) =/= node() -> outside;
first_known([_ | Ancestors], Known) -> first_known(Ancestors, Known);
first_known(_, _) -> unknown.

-doc "Where a process comes from; `unknown` also for one that was never seen.".
-spec of_process(pid(), origins()) -> origin().
of_process(P, Known) -> maps:get(P, Known, unknown).
