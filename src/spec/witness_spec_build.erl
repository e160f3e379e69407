-module(witness_spec_build).
-moduledoc """
Makes object code of checked properties.

Erlang's linter checks the author's code last: its findings keep the author's line and column.
""".

-export([units/1, forms/3, object/3]).
-export_type([options/0]).

-doc """
`max_obligations`: limit of the obligations of a state, 1000 without it; `max_state`: of the words that the values of parameters have, and
the windows of `let`s, 10,000 without it. Other keys are ignored.
""".
-type options() :: #{max_obligations => pos_integer(), max_state => pos_integer(), atom() => term()}.

-type finding() :: witness_spec_diagnostic:finding().

%% Compiling takes some milliseconds per state.
-define(MAX_NODES, 2_000).
-define(MAX_OBLIGATIONS, 1_000).
-define(MAX_STATE, 10_000).
%% Object codes that are kept.
-define(MAX_KEPT, 64).

-doc "The properties with their nodes and actions, numbered through the whole file.".
-spec units([witness_spec_parse:property()]) -> {ok, [witness_spec_code:unit()]} | {error, [finding()]}.
units(Properties) ->
    try
        {Units, _} = lists:mapfoldl(fun unit/2, {1, 1}, lists:enumerate(Properties)),
        {ok, Units}
    catch
        throw:{error, _, _, _, _} = Finding -> {error, [Finding]}
    end.

unit({Index, #{formula := Formula, signatures := Signatures, all := All, among := Among, lets := Lets,
               location := Location} = Property}, {First, FirstId}) ->
    Unsure = case All of true -> []; false -> witness_spec_attach:unsure(Property) end,
    Scope = ordsets:intersection([witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Signatures]),
    Per = maps:get(per, Property, []),
    Known = ordsets:union(Scope, ordsets:from_list(Per)),
    {Start, Nodes} = witness_spec_node:nodes(witness_spec_node:simplify(Formula), Known, First),
    Next = First + length(Nodes),
    Next =< ?MAX_NODES + 1 orelse
        throw(witness_spec_diagnostic:error(Location, too_large,
            io_lib:format("the formulas of a file have at most ~b states", [?MAX_NODES]),
            "split it into several files")),
    {Numbered, {NextId, _}} = lists:mapfoldl(fun actions/2, {FirstId, #{}}, Nodes),
    {#{index => Index, signatures => Signatures, all => All, among => Among, scope => Scope, over => maps:get(over, Property, all),
       per => Per, lets => Lets, requests => maps:get(requests, Property, false), unsure => Unsure, start => Start,
       nodes => Numbered},
     {Next, NextId}};
unit({Index, #{signatures := Signatures} = Property}, Next) ->
    {#{index => Index, signatures => Signatures, unsure => witness_spec_attach:unsure(Property)}, Next}.

%% An action that is in both bounds of the formula (`m:witness_spec_clocks`) has one number.
actions(#{leaves := Leaves} = Node, Before) ->
    {Numbered, After} = lists:mapfoldl(fun({Modality, #{order := Order} = Action, Target}, {Next, Known}) ->
        case Known of
            #{Order := Id} -> {{Modality, Action#{id => Id}, Target}, {Next, Known}};
            #{} -> {{Modality, Action#{id => Next}, Target}, {Next + 1, Known#{Order => Next}}}
        end
    end, Before, Leaves),
    {Node#{leaves := Numbered}, After}.

-doc "The forms of the module with their comments.".
-spec forms(module(), [witness_spec_code:unit()], options()) -> [{Comment :: binary(), erl_parse:abstract_form()}].
forms(Module, Units, Options) ->
    Parts = [Part || Unit <- Units, Part <- parts(Unit)],
    Patterns = [[Pattern, Guard] || #{pattern := Pattern, guard := Guard} <- Parts],
    Limits = #{obligations => maps:get(max_obligations, Options, ?MAX_OBLIGATIONS),
               words => maps:get(max_state, Options, ?MAX_STATE)},
    [Name | Forms] = witness_spec_code:generate(Module, Units, Limits, witness_spec_pattern:variables([Patterns, computed(Units)])),
    [Name] ++ [{~"The pass of the compiler that this leaves out takes some guards that fail for true.",
                {attribute, erl_anno:new(0), compile, no_bool_opt}}
               || is_misread([Guard || #{guard := Guard} <- Parts])] ++ Forms.

%% `let`s and the parameters of nodes, with what computes them.
computed(Units) ->
    [{var, 0, Name} || #{lets := Lets} <- Units, Name <- witness_spec_let:names(Lets)]
        ++ [Expr || #{lets := Lets} <- Units, #{'of' := {Expr, _}} <- Lets]
        ++ lists:append([[{var, 0, Name}, Value] || {node, _, Variables} <- witness_spec_code:targets(Units),
                                                    {Name, Value, _} <- Variables]).

%% A compiler pass for Boolean expressions (beam_ssa_bool, in 27 and 29) is wrong for `X or (Y andalso Z)', if the compiler sees
%% that `Z' fails. It takes `Y andalso Z' for false, and then the guard for true if `X' is. Without this pass guards cost more,
%% so it is disabled only if an operator that evaluates both sides contains one that does not.
is_misread(Guards) ->
    has(fun(Op) -> Op =:= 'or' orelse Op =:= 'and' orelse Op =:= 'xor' orelse Op =:= 'not' end,
        fun(Inner) -> has(fun(Op) -> Op =:= 'andalso' orelse Op =:= 'orelse' end, fun(_) -> true end, Inner) end,
        Guards).

%% Whether an operator of this kind has operands of that kind.
has(Is, Operands, {op, _, Op, One}) -> Is(Op) andalso Operands([One]) orelse has(Is, Operands, One);
has(Is, Operands, {op, _, Op, One, Other}) -> Is(Op) andalso Operands([One, Other]) orelse has(Is, Operands, [One, Other]);
has(Is, Operands, Expr) when is_tuple(Expr) -> has(Is, Operands, tuple_to_list(Expr));
has(Is, Operands, [Expr | Exprs]) -> has(Is, Operands, Expr) orelse has(Is, Operands, Exprs);
has(_, _, _) -> false.

parts(#{nodes := Nodes, over := Over, lets := Lets} = Unit) ->
    witness_spec_parse:property_signatures(Unit) ++ witness_spec_parse:let_actions(Lets)
        ++ [Action || #{leaves := Leaves} <- Nodes, {_, Action, _} <- Leaves]
        ++ case Over of all -> []; _ -> Over end;
parts(#{signatures := Signatures}) ->
    Signatures.

-doc "The object code of the module.".
-spec object(module(), [witness_spec_code:unit()], options()) -> {ok, binary()} | {error, [finding()]}.
object(Module, Units, Options) ->
    Forms = [Form || {_, Form} <- forms(Module, Units, Options)],
    Digest = erlang:md5(term_to_binary(Forms, [deterministic])),
    case persistent_term:get({?MODULE, Digest}, none) of
        none ->
            Compiled = compile(Module, Forms),
            _ = [keep(Digest, Object) || {ok, Object} <- [Compiled]],
            Compiled;
        Object -> {ok, Object}
    end.

%% Each test compiles its specifications again, which takes longer than the rest of its run. The forms determine the object code. A
%% term that is added costs other processes nothing, unlike one that is replaced or erased: so the first ones stay.
keep(Digest, Object) ->
    case atomics:add_get(kept(), 1, 1) of
        Count when Count =< ?MAX_KEPT -> persistent_term:put({?MODULE, Digest}, Object);
        _ -> ok
    end.

%% Two processes that are the first at the same time count separately: then twice as many may be kept.
kept() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Count = atomics:new(1, []),
            ok = persistent_term:put(?MODULE, Count),
            Count;
        Count -> Count
    end.

compile(Module, Forms) ->
    %% Options from the environment are ignored: they could change what the module does.
    case compile:noenv_forms(Forms, [binary, return_errors, deterministic]) of
        {ok, Module, Object} -> {ok, Object};
        {error, Errors, _} -> {error, lists:usort([finding(Error) || {_, InFile} <- Errors, Error <- InFile])}
    end.

finding({{Line, Column}, Module, Reason}) when Line > 0 ->
    witness_spec_diagnostic:error({Line, Column}, erlang, Module:format_error(Reason));
finding({_, Module, Reason}) ->
    %% A limit of the compiler, reported in several lines.
    Lines = string:lexemes(lists:flatten(Module:format_error(Reason)), " \n"),
    witness_spec_diagnostic:error(undefined, erlang, lists:join(" ", Lines)).
