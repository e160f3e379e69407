-module(witness_run_names).
-moduledoc """
What the processes in the explanation of a violation are called, and which of them its aliases belong to. The VM tells the name of a
process only as long as it lives, so the run asks for it as soon as the violation is reported.
""".

-export([add/4, of_system/1, aliases/2, syntax/1]).

-export_type([names/0, called/0]).

-doc "Registered names, labels, or the modules that processes were spawned with, as text.".
-type names() :: #{witness_event:proc() => binary()}.

-doc "The registered name of a process, its label, or the module that it was spawned with; none if none of them is known.".
-type called() :: fun((pid()) -> [atom() | term()]).

-type step() :: #{event := witness_event:event(), _ => _}.

-define(MAX_PROCESSES, 20).
-define(NAME_CHARACTERS, 60).

-doc """
Adds `names` to the outcomes of a report that are violations. To ask costs the processes some reductions, so only as many outcomes get
names as are `Left`. `Called` gives the names or modules of processes that may have ended. With `redact` labels are left out: they may be data.
""".
-spec add(Message :: tuple(), Left :: non_neg_integer(), called(), witness_options:options()) ->
    {tuple(), Left :: non_neg_integer()}.
add(Report, 0, _, _) -> {Report, 0};
add({reports, Reports}, Left, Called, Options) ->
    {Named, Left1} = lists:mapfoldl(fun(Report, N) -> add(Report, N, Called, Options) end, Left, Reports),
    {{reports, Named}, Left1};
add({Kind, Reader, #{verdict := no, steps := [_ | _] = Steps} = Outcome}, Left, Called, Options)
        when Kind =:= verdict; Kind =:= slice ->
    Names = names(Steps, Called, Options),
    Named = Outcome#{names => maps:map(fun shown/2, Names),
                     syntax => witness_event:syntax([Name || _ := Name <- Names, is_atom(Name)])},
    {{Kind, Reader, Named}, Left - 1};
%% What was found in a part of a log.
add({checked, Number, #{found := Found} = Checked}, Left, Called, Options) ->
    {Named, Left1} = lists:mapfoldl(fun({Kind, Meta, Place, Outcome}, N) ->
        {{_, _, Outcome1}, N1} = add({Kind, undefined, Outcome}, N, Called, Options),
        {{Kind, Meta, Place, Outcome1}, N1}
    end, Left, Found),
    {{checked, Number, Checked#{found := Named}}, Left1};
add(Report, Left, _, _) -> {Report, Left}.

-doc "What the processes are called with which the system begins. They may have ended by the time of a verdict.".
-spec of_system(witness_options:options()) -> called().
of_system(#{system := {children, Parents}} = Options) ->
    Names = #{P => Name || P <- witness_instrument:parent_pids(Parents), Name <- name(P, Options)},
    fun(P) -> [Name || #{P := Name} <- [Names]] end;
of_system(_) -> fun(_) -> [] end.

%% The processes of a log are not of this time: the VM is not asked.
names(Steps, Called, #{system := {log, _}}) ->
    #{P => Name || P <- latest([Q || Q <- parties(Steps, true), is_process(Q)]), Name <- Called(P)};
names(Steps, Called, Options) ->
    #{P => Name || P <- latest([Q || Q <- parties(Steps, false), is_pid(Q), node(Q) =:= node()]),
                   Name <- named(P, Called, Options)}.

latest(Processes) -> lists:sublist(lists:uniq(Processes), ?MAX_PROCESSES).

%% Of a process in a library's function only the run knows the module of its author.
named(P, Called, Options) ->
    case own_name(P, Options) of
        ended -> Called(P);
        [] ->
            case is_wrapped(P, Options) of
                true -> first(Called(P), spawned(P));
                false -> first(spawned(P), Called(P))
            end;
        Names -> Names
    end.

first([], Names) -> Names;
first(Names, _) -> Names.

is_wrapped(P, #{signatures := Rows}) ->
    {ok, Table} = witness_event_wrapper:table(Rows),
    lists:member(witness_event_signature:of_process(P), witness_event_wrapper:functions(Table)).

is_process({external, Name}) -> is_binary(Name);
is_process(P) -> is_pid(P).

-doc """
The aliases to which messages were sent in the steps of an outcome, with the processes that have made them. `IsLog`: the steps are from
a log, so the size of the VM's table of processes is not known. There the process must be one that the log knows.
""".
-spec aliases(#{steps := [step()], names => names(), _ => _}, IsLog :: boolean()) -> #{reference() => pid()}.
aliases(#{steps := Steps} = Outcome, IsLog) ->
    Names = maps:get(names, Outcome, #{}),
    #{To => P || To := P <- owners(Steps, IsLog), not IsLog orelse is_map_key(P, Names) orelse takes_part(P, Steps)}.

takes_part(P, Steps) -> lists:any(fun(#{event := Event}) -> lists:member(P, parties(Event)) end, Steps).

owners(Steps, IsLog) ->
    #{To => Owner || #{event := {send, _, To, _, _}} <- Steps, is_reference(To), {ok, Owner} <- [owner(To, IsLog)]}.

owner(Alias, true) -> witness_event_alias:foreign_owner(Alias);
owner(Alias, false) -> witness_event_alias:owner(Alias).

-doc "The notation of a verdict: Elixir's, if the module that one of its processes runs is written in Elixir.".
-spec syntax(#{signature := witness_event:signature() | undefined, steps := [step()], _ => _}) -> witness_event:syntax().
syntax(#{syntax := elixir}) -> elixir;
syntax(#{signature := Signature, steps := Steps}) ->
    witness_event:syntax([Module || {Module, _, _} <- [Signature]]
                         ++ [Module || #{event := Event} <- Steps, Module <- module(Event)]).

module({init, _, _, {Module, _, _}, _}) -> [Module];
module({fork, _, _, {Module, _, _}, _}) -> [Module];
module({attached, _, {Module, _, _}, _}) -> [Module];
module(_) -> [].

%% The last ones first.
parties(Steps, IsLog) ->
    Aliases = owners(Steps, IsLog),
    [maps:get(P, Aliases, P) || #{event := Event} <- lists:reverse(Steps), P <- parties(Event)].

parties({fork, Parent, Child, _, _}) -> [Parent, Child];
parties({init, Child, Parent, _, _}) -> [Child, Parent];
parties({Kind, P, Other, _, _}) when Kind =:= send; Kind =:= recv -> [P, Other];
parties(Item) -> [witness_event:proc(Item)].

%% At most one.
name(P, Options) ->
    case own_name(P, Options) of
        ended -> [];
        Names -> first(Names, spawned(P))
    end.

own_name(P, #{redact := Redact}) ->
    case process_info(P, registered_name) of
        {registered_name, Name} -> [Name];
        [] when Redact -> [];
        [] ->
            case proc_lib:get_label(P) of
                undefined -> [];
                Label -> [Label]
            end;
        undefined -> ended
    end.

%% The VM keeps nothing of the fun that a process was spawned with.
spawned(P) ->
    case witness_event_signature:of_process(P) of
        {Module, _, _} when Module =/= erlang -> [Module];
        _ -> []
    end.

shown(_, Name) when is_atom(Name) -> witness_text:name(Name, ?NAME_CHARACTERS);
shown(_, Text) when is_binary(Text) -> witness_text:clean(Text);
%% The label of a test of ExUnit.
shown(_, {Module, Test}) when is_atom(Module), is_atom(Test) -> witness_text:clean(atom_to_binary(Test));
shown(P, Label) -> witness_event:format_term(Label, ?NAME_CHARACTERS, witness_event:syntax(spawned(P))).
