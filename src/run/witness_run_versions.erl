-module(witness_run_versions).
-moduledoc """
The specifications of a run: the current ones, for new monitors, and earlier versions (`witness:replace/2`) for as long as one
of their monitors is alive.

Pure: it returns the specifications that the run is to unload, since they are not needed any more. Those that the user gave
compiled are never among them.
""".

-export([new/2, number/1, sources/1, is_written/2, replace/2, settle/2, change_users/3, compiled/1]).
-export_type([versions/0]).

%% version: of the current specifications
%% given: as the user gave them
%% settled: versions up to this one start no monitors any more
%% users: monitors that are alive
-record(versions, {specs :: [witness_spec:instrumentation_map()],
                   version = 1 :: pos_integer(),
                   given :: [term()],
                   sources :: witness_run_maps:sources(),
                   old = #{} :: #{Version :: pos_integer() => [witness_spec:instrumentation_map()]},
                   settled = 0 :: non_neg_integer(),
                   users = #{} :: #{Version :: pos_integer() => pos_integer()}}).

-opaque versions() :: #versions{}.

-doc "The first version; `Given` is what the user gave for it.".
-spec new([witness_spec:instrumentation_map()], Given :: [term()]) -> versions().
new(Specs, Given) ->
    #versions{specs = Specs, given = Given, sources = witness_run_maps:sources(Specs)}.

-spec number(versions()) -> pos_integer().
number(#versions{version = Version}) -> Version.

-doc "The files of all versions.".
-spec sources(versions()) -> witness_run_maps:sources().
sources(#versions{sources = Sources}) -> Sources.

-doc "Whether a property is written in a file; otherwise it is a module's.".
-spec is_written(witness_run_maps:key(), versions()) -> boolean().
is_written({Spec, _, Version}, #versions{sources = Sources}) -> is_map_key({Spec, Version}, Sources).

-doc "Replaces the current specifications. Returns the properties of the new ones, with the new version.".
-spec replace([witness_spec:instrumentation_map()], versions()) -> {[witness_run_maps:property()], versions()}.
replace(Specs, V = #versions{specs = Old, version = Before, sources = Sources}) ->
    Version = Before + 1,
    Properties = [P#{key := {Spec, Name, Version}}
                  || #{key := {Spec, Name, _}} = P <- witness_run_maps:properties(Specs, [])],
    New = #{{Spec, Version} => Source || {Spec, _} := Source <- witness_run_maps:sources(Specs)},
    {Properties, V#versions{specs = Specs, version = Version, sources = maps:merge(Sources, New),
                            old = (V#versions.old)#{Before => Old}}}.

-doc "No monitor of this version, or an earlier one, is started any more.".
-spec settle(Version :: pos_integer(), versions()) -> {Unload :: [witness_spec:instrumentation_map()], versions()}.
settle(Version, V) -> drop_unused(V#versions{settled = Version}).

-doc "Changes the number of live monitors of a property.".
-spec change_users(witness_run_maps:key(), integer(), versions()) -> {Unload :: [witness_spec:instrumentation_map()], versions()}.
change_users({_, _, Version} = Key, Count, V = #versions{users = Users}) ->
    case is_written(Key, V) of
        false -> {[], V};
        true ->
            case maps:get(Version, Users, 0) + Count of
                0 -> drop_unused(V#versions{users = maps:remove(Version, Users)});
                Now -> {[], V#versions{users = Users#{Version => Now}}}
            end
    end.

%% A group still asks its specification which processes it names, after its monitor has ended as before.
drop_unused(V = #versions{old = Old, users = Users, settled = Settled}) ->
    Unused = #{Version => [Spec || #{entries := Entries} = Spec <- Specs,
                                   not lists:any(fun(#{group := G}) -> G end, Entries)]
               || Version := Specs <- Old, Version =< Settled, not is_map_key(Version, Users)},
    {lists:append([compiled_here(Specs, V) || Specs <- maps:values(Unused)]),
     V#versions{old = maps:filtermap(fun(Version, Specs) ->
                                             case Specs -- maps:get(Version, Unused, []) of
                                                 [] -> false;
                                                 Left -> {true, Left}
                                             end
                                     end, Old)}}.

-doc "All specifications that the run has compiled and not unloaded.".
-spec compiled(versions()) -> [witness_spec:instrumentation_map()].
compiled(V = #versions{specs = Specs, old = Old}) -> compiled_here(Specs ++ lists:append(maps:values(Old)), V).

compiled_here(Specs, #versions{given = Given}) -> Specs -- Given.
