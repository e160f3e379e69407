-module(witness_run_names).
-moduledoc """
What the processes in the explanation of a violation are called, and which of them its aliases belong to. The VM tells the name of a
process only as long as it lives, so the run asks for it as soon as the violation is reported.
""".

-export([add/4, aliases/2]).

-export_type([names/0]).

-doc "Registered names, labels, or the modules that processes were spawned with, as text.".
-type names() :: #{witness_event:proc() => binary()}.

-define(MAX_PROCESSES, 20).
-define(NAME_CHARACTERS, 60).

-doc """
Adds `names` to the outcomes of a report that are violations. To ask costs the processes some reductions, so only as many outcomes get
names as are `Left`. `Known`: the modules of processes that may have ended. With `redact` labels are left out: they may be data.
""".
-spec add(Message :: tuple(), Left :: non_neg_integer(), Known :: #{pid() => module()}, witness_options:options()) ->
    {tuple(), Left :: non_neg_integer()}.
add(Report, 0, _, _) -> {Report, 0};
add({reports, Reports}, Left, Known, Options) ->
    {Named, Left1} = lists:mapfoldl(fun(Report, N) -> add(Report, N, Known, Options) end, Left, Reports),
    {{reports, Named}, Left1};
add({Kind, Reader, #{verdict := no, steps := [_ | _] = Steps} = Outcome}, Left, Known, Options)
        when Kind =:= verdict; Kind =:= slice ->
    {{Kind, Reader, Outcome#{names => names(Steps, Known, Options)}}, Left - 1};
add(Report, Left, _, _) -> {Report, Left}.

names(Steps, Known, Options) ->
    Local = lists:uniq([P || #{event := Event} <- lists:reverse(Steps), P <- parties(Event), is_pid(P), node(P) =:= node()]),
    maps:merge(#{P => shown(Module) || P := Module <- Known, lists:member(P, Local)},
               #{P => Name || P <- lists:sublist(Local, ?MAX_PROCESSES), Name <- name(P, Options)}).

-doc "The aliases to which messages were sent in these steps, with the processes that have made them. `IsLog`: the steps are from a log.".
-spec aliases([#{event := witness_event:event(), _ => _}], IsLog :: boolean()) -> #{reference() => pid()}.
aliases(Steps, IsLog) ->
    #{To => Owner || #{event := {send, _, To, _, _}} <- Steps, is_reference(To), {ok, Owner} <- [owner(To, IsLog)]}.

owner(Alias, true) -> witness_event_alias:foreign_owner(Alias);
owner(Alias, false) -> witness_event_alias:owner(Alias).

parties({fork, Parent, Child, _, _}) -> [Parent, Child];
parties({init, Child, Parent, _, _}) -> [Child, Parent];
parties({send, P, To, _, _}) when is_reference(To) ->
    case witness_event_alias:owner(To) of
        {ok, Owner} -> [P, Owner];
        none -> [P]
    end;
parties({Kind, P, Other, _, _}) when Kind =:= send; Kind =:= recv -> [P, Other];
parties(Item) -> [witness_event:proc(Item)].

%% At most one.
name(P, #{redact := Redact}) ->
    case process_info(P, registered_name) of
        {registered_name, Name} -> [shown(Name)];
        [] when Redact -> spawned(P);
        [] ->
            case proc_lib:get_label(P) of
                undefined -> spawned(P);
                Label -> [shown(Label)]
            end;
        undefined -> []
    end.

%% The VM keeps nothing of the fun that a process was spawned with.
spawned(P) ->
    case witness_event_signature:of_process(P) of
        {Module, _, _} when Module =/= erlang -> [shown(Module)];
        _ -> []
    end.

shown(Name) when is_atom(Name) -> witness_text:name(Name, ?NAME_CHARACTERS);
shown(Text) when is_binary(Text) -> witness_text:clean(Text);
shown(Label) -> witness_event:format_term(Label, ?NAME_CHARACTERS).
