-module(witness_spec_build).
-moduledoc """
From checked properties to object code.

Erlang's linter has the last word on what the author wrote: what it finds keeps the author's line and column.
""".

-export([units/1, forms/2, object/2]).

-type finding() :: witness_spec_diagnostic:finding().

%% Compiling takes some milliseconds a state.
-define(MAX_NODES, 2_000).

-doc "The properties with their nodes, which are numbered through the whole file.".
-spec units([witness_spec_parse:property()]) -> {ok, [witness_spec_code:unit()]} | {error, [finding()]}.
units(Properties) ->
    try
        {Units, _} = lists:mapfoldl(fun unit/2, 1, lists:enumerate(Properties)),
        {ok, Units}
    catch
        throw:{error, _, _, _, _} = Finding -> {error, [Finding]}
    end.

unit({Index, #{formula := Formula, signatures := Signatures, location := Location}}, First) ->
    Scope = ordsets:intersection([witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Signatures]),
    {Start, Nodes} = witness_spec_node:nodes(witness_spec_node:simplify(Formula), Scope, First),
    Next = First + length(Nodes),
    Next =< ?MAX_NODES + 1 orelse
        throw(witness_spec_diagnostic:error(Location, too_large,
            io_lib:format("the formulas of a file have at most ~b states", [?MAX_NODES]),
            "split it into several files")),
    {#{index => Index, signatures => Signatures, start => Start, nodes => Nodes}, Next};
unit({Index, #{signatures := Signatures}}, First) ->
    {#{index => Index, signatures => Signatures}, First}.

-doc "The forms of the module with their comments.".
-spec forms(module(), [witness_spec_code:unit()]) -> [{Comment :: binary(), erl_parse:abstract_form()}].
forms(Module, Units) ->
    Patterns = [[Pattern, Guard] || #{signatures := Signatures} <- Units,
                                    #{pattern := Pattern, guard := Guard} <- Signatures]
        ++ [[Pattern, Guard] || #{nodes := Nodes} <- Units, #{leaves := Leaves} <- Nodes,
                                {_, #{pattern := Pattern, guard := Guard}, _} <- Leaves],
    witness_spec_code:generate(Module, Units, witness_spec_pattern:variables(Patterns)).

-doc "The object code of the module.".
-spec object(module(), [witness_spec_code:unit()]) -> {ok, binary()} | {error, [finding()]}.
object(Module, Units) ->
    Forms = [Form || {_, Form} <- forms(Module, Units)],
    %% Options from the environment are not taken: they could change what the module does.
    case compile:noenv_forms(Forms, [binary, return_errors, deterministic]) of
        {ok, Module, Object} -> {ok, Object};
        {error, Errors, _} -> {error, lists:usort([finding(Error) || {_, InFile} <- Errors, Error <- InFile])}
    end.

finding({{Line, Column}, Module, Reason}) when Line > 0 ->
    witness_spec_diagnostic:error({Line, Column}, erlang, Module:format_error(Reason));
finding({_, Module, Reason}) ->
    %% A limit of the compiler, told in several lines.
    Lines = string:lexemes(lists:flatten(Module:format_error(Reason)), " \n"),
    witness_spec_diagnostic:error(undefined, erlang, lists:join(" ", Lines)).
