-module(witness_sample).
-moduledoc """
A hook of Common Test that leaves out cases. Of a suite it leaves one scenario: the first (of a group its first, with the set-up of
the group). The environment variable `WITNESS_SAMPLE` says of which suites:

- `all`: of each, so that what is broken altogether is found within minutes (`make check`). Suites with a set-up of minutes are left
  out;
- the names of suites, with blanks between them: of these, since what else they test does not depend on the release of OTP. Of
  `SUITE/groups` one scenario of each group is left;
- not set: of none.

The other suites have the share of this version, if their cases are shared (`m:witness_share`).
""".

-export([id/1, init/2, post_groups/2, post_all/3]).

%% Suites that build projects or a service, or fill the code cache for Elixir, before their first scenario.
-define(LEFT_OUT, [witness_acme_air_SUITE, witness_inline_projects_SUITE, witness_record_elixir_SUITE, witness_replay_elixir_SUITE,
                   witness_team_tests_SUITE, witness_cli_streams_SUITE,
                   witness_mix_tasks_SUITE, witness_rebar3_plugin_SUITE]).

-doc false.
-spec id(term()) -> atom().
id(_) -> ?MODULE.

-doc false.
-spec init(term(), term()) -> {ok, []}.
init(_, _) -> {ok, []}.

-doc false.
-spec post_groups(module(), [tuple()]) -> [tuple()].
post_groups(Suite, Groups) ->
    case kept(Suite) of
        all -> [shared(Suite, Group) || Group <- Groups];
        groups -> [{Name, Properties, first_of_group(Members)} || {Name, Properties, Members} <- Groups];
        one -> [group(Group) || Group <- Groups]
    end.

%% The cases of a sequence need those before them.
shared(Suite, {Name, Properties, Members}) ->
    case lists:member(sequence, Properties) of
        true -> {Name, Properties, Members};
        false -> {Name, Properties, witness_share:cases(Suite, Members)}
    end.

group({Name, Properties, Members}) -> {Name, Properties, first(Members)}.

first([{_, _, Members} = Group | _]) when is_list(Members) -> [group(Group)];
first(Members) -> lists:sublist(Members, 1).

%% All groups in it, or its first case.
first_of_group([Case | _]) when is_atom(Case) -> [Case];
first_of_group(Groups) -> Groups.

-doc false.
-spec post_all(module(), [term()] | {skip, term()}, [tuple()]) -> [term()] | {skip, term()}.
post_all(Suite, All, _) when is_list(All) ->
    case kept(Suite) of
        one ->
            case wanted() =:= ["all"] andalso lists:member(Suite, ?LEFT_OUT) of
                true -> {skip, "its set-up takes minutes"};
                false -> lists:sublist(All, 1)
            end;
        groups -> All;
        all -> witness_share:cases(Suite, All)
    end;
post_all(_, Other, _) -> Other.

kept(Suite) ->
    Name = atom_to_list(Suite),
    Wanted = wanted(),
    case {Wanted =:= ["all"] orelse lists:member(Name, Wanted), lists:member(Name ++ "/groups", Wanted)} of
        {true, _} -> one;
        {false, true} -> groups;
        {false, false} -> all
    end.

wanted() -> string:lexemes(os:getenv("WITNESS_SAMPLE", ""), " ").
