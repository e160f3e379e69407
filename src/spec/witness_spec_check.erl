-module(witness_spec_check).
-moduledoc """
Errors and suspicious parts in a well-formed specification.

Errors: unbound variables and recursion variables, recursion without an action in between, a `monitor` outside
sHML, names that are used twice, `per` and `over` that do not fit. Warnings: branches of a
`monitor` that match the same event, variables that only some of the signatures bind, recursion variables that hide
others; what can never match (`m:witness_spec_guard`), what can never be reached (`m:witness_spec_reach`), what means
something else in Elixir (`m:witness_spec_elixir_string`), and what no module exports (`m:witness_spec_export`).
""".

-export([properties/2, check_apart/1, check_receives/2, check_functions/2]).
-export_type([options/0]).

%% More branches or actions than these are not compared with each other.
-define(MAX_BRANCHES, 200).

-type finding() :: witness_spec_diagnostic:finding().

-doc "With `exports`, signatures are compared with the functions that modules have. Other keys are ignored.".
-type options() :: #{exports => witness_spec_export:exports(), term() => term()}.

-doc "All findings about these properties.".
-spec properties([witness_spec_parse:property()], options()) -> [finding()].
properties(Properties, Options) ->
    names(Properties, #{})
        ++ lists:append([property(Property) || Property <- Properties])
        ++ witness_spec_elixir_string:properties(Properties)
        ++ case Options of
            #{exports := Exports} -> witness_spec_export:properties(Properties, Exports);
            _ -> []
        end.

-doc "Errors for properties that must see processes together, if each process is observed separately.".
-spec check_apart([witness_spec_parse:property()]) -> [finding()].
check_apart(Properties) ->
    [witness_spec_diagnostic:error(Location, needs_central,
        "a property without `with` is about all processes together, which only central monitoring sees",
        "watch centrally (`--instrument central`), or say with `with m:f(_)` which processes it is about, each by itself")
     || #{all := true, location := Location} <- Properties].

-doc "Errors for properties about messages that are taken, if deliveries are seen, and the other way round.".
-spec check_receives([witness_spec_parse:property()], Seen :: taken | delivered) -> [finding()].
check_receives(Properties, Seen) ->
    [witness_spec_diagnostic:error(Location, needs_receives, ["`", atom_to_list(Wanted), "` cannot be seen here: ", seen(Seen)],
                                   where(Wanted))
     || #{receives := {Wanted, Location}} <- Properties, Wanted =/= Seen].

seen(delivered) -> "`_ ? M` is a message that was delivered to its process, whether or not it is ever taken";
seen(taken) -> "`_ ? M` is a message that its process has taken, not one that waits in the mailbox".

where(taken) -> "what a process takes is seen inline (`--instrument inline`), in recordings (`record`, then `check` or `replay`), "
                "and by `search`";
where(delivered) -> "what is delivered is seen by `run`, `attach` and `record`, with outline or central monitors".

-doc """
Errors for properties about calls and returns of functions, which cannot be seen here. `Why` is what is missing, in words, and what to do.
""".
-spec check_functions([witness_spec_parse:property()], Why :: {unicode:chardata(), unicode:chardata()}) -> [finding()].
check_functions(Properties, {Why, Hint}) ->
    [witness_spec_diagnostic:error(Location, needs_functions, ["calls and returns of functions cannot be seen here: ", Why], Hint)
     || #{over := [_ | _] = Over} <- Properties,
        [#{location := Location} | _] <- [[Action || Action <- Over, witness_spec_action:called(Action) =/= none]]].

%% A function is traced because `over` names it.
functions(#{over := Over} = Property) ->
    Named = case Over of all -> []; _ -> [witness_spec_action:called(Action) || Action <- Over] end,
    [witness_spec_diagnostic:error(Location, needs_over,
        ["the ", events(Kind), " of ", quote_function(Function), " are events only where `over` names them"],
        ["`over` needs such an action, as in `over ", witness_spec_action:any(Called), "`"])
     || #{location := Location} = Action <- witness_spec_parse:property_actions(Property),
        {Kind, Function} = Called <- [witness_spec_action:called(Action)], not lists:member(Called, Named)].

events(call) -> "calls";
events(return) -> "returns".

quote_function({M, F, A}) -> witness_spec_diagnostic:quote(io_lib:format("~tw:~tw/~b", [M, F, A])).

names([#{name := Name, location := {Line, _} = Location} | Rest], Seen) when is_binary(Name) ->
    case Seen of
        #{Name := First} ->
            [witness_spec_diagnostic:error(Location, duplicate_name,
                ["a property has the name ", witness_spec_diagnostic:quote(Name), " already"],
                io_lib:format("the first one is in line ~b", [First])) | names(Rest, Seen)];
        _ ->
            names(Rest, Seen#{Name => Line})
    end;
names([_ | Rest], Seen) -> names(Rest, Seen);
names([], _) -> [].

no_receive(#{receives := {Word, Location}, over := Actions}) ->
    [witness_spec_diagnostic:error(Location, needless_receives,
        ["`", atom_to_list(Word), "` is about messages that a process receives, and no action of `over` is"],
        "write it in front of a list with an action such as `_ ? M`")
     || not lists:any(fun(#{kind := Kind}) -> Kind =:= recv end, Actions)];
no_receive(_) -> [].

property(#{signatures := Signatures, per := Per} = Property) ->
    Bound = [witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Signatures],
    Common = ordsets:intersection(Bound),
    Partly = ordsets:subtract(ordsets:union(Bound), Common),
    Guards = lists:append([unknown(Pattern, []) ++ check_bound(Guard, witness_spec_pattern:variables(Pattern), []) ||
                           #{pattern := Pattern, guard := Guard} <- witness_spec_parse:property_signatures(Property)]),
    Slices = slices(Property, Common, Partly),
    Scope = ordsets:union(Common, ordsets:from_list(Per)),
    Unknown = ordsets:subtract(Partly, Scope),
    Lets = lets(Property, Scope, Unknown),
    Formulas = case Property of
        #{formula := Formula, dialect := Dialect, lets := Defined} ->
            formula(Formula, #{dialect => Dialect, scope => Scope, partly => Unknown, lets => witness_spec_let:names(Defined),
                               loops => #{}}, []);
        _ ->
            []
    end,
    Findings = maps:get(warnings, Property, []) ++ Guards ++ among(Property) ++ Slices ++ no_receive(Property)
        ++ functions(Property) ++ Lets ++ Formulas,
    %% After an error, the missing part might have decided.
    case lists:keymember(error, 1, Findings) of
        true -> Findings;
        false -> Findings ++ possible(Property, Common)
    end.

%% Each process would give them other values.
among(#{among := [_ | _] = Among, per := Per, lets := Lets} = Property) ->
    Used = ordsets:union(ordsets:union(ordsets:from_list(Per), witness_spec_let:names(Lets)),
                         witness_spec_pattern:variables([[Pattern, Guard] || #{pattern := Pattern, guard := Guard}
                                                                             <- witness_spec_parse:property_actions(Property)])),
    [witness_spec_diagnostic:error(Location, among_variable,
        [quote(Name), " of `among` is used elsewhere, and is another one there: a signature of `among` only says which processes are read"],
        "give it another name, or write `_`; what a process is spawned with can be read from its birth, as in `over C <- _, m:f(V)`")
     || #{pattern := Pattern} <- Among, {Name, Location} <- lists:ukeysort(1, witness_spec_pattern:occurrences(Pattern)),
        ordsets:is_element(Name, Used)];
among(_) -> [].

over(#{over := all}) -> [];
over(#{over := Actions}) -> Actions.

%% What can match and be reached at all. If a signature or an action of `over` never matches, its bindings are unknown, and
%% nothing follows from them.
possible(#{signatures := Signatures, per := Per} = Property, Common) ->
    {Spawned, Unmatched} = types(witness_spec_parse:property_signatures(Property), fun witness_spec_guard:signature/1),
    Signature = maps:with(Common, join_types(Spawned)),
    {Seen, Unseen} = types(over(Property), fun(Action) -> witness_spec_guard:action(Action, Signature) end),
    Keys = [maps:with(Per, Types) || Types <- Seen, lists:all(fun(Name) -> is_map_key(Name, Types) end, Per)],
    Unmatched ++ Unseen ++ case Property of
        #{formula := Formula, group := Group, over := Over, lets := Lets} ->
            Values = witness_spec_let:kinds(Lets, witness_spec_parse:formula_actions(Formula)),
            Known = maps:merge(maps:merge(Signature, join_types(Keys)), Values),
            Conditions = [Action || #{kind := Kind} = Action <- witness_spec_parse:let_actions(Lets), Kind =/= test],
            {_, Unheld} = types(Conditions, fun(Action) -> witness_spec_guard:action(Action, Known) end),
            {Open, Never} = witness_spec_guard:formula(Formula, Known),
            Scope = ordsets:union(Common, ordsets:from_list(Per)),
            compares_none(Property, Values) ++ Unheld ++ never_read(Conditions, Over, Scope)
                ++ without_key(Lets, {Over, Per}, Scope) ++ Never
                ++ witness_spec_reach:formula(Open, #{what => witness_spec_parse:what(Property), group => Group,
                                                      signatures => Signatures, scope => Scope, per => Per, over => Over})
                ++ witness_spec_else:warnings(Property, Scope);
        _ ->
            []
    end.

%% Conditions for which no event is read.
never_read(Conditions, Over, Scope) when is_list(Over), length(Over) =< ?MAX_BRANCHES ->
    Seen = [witness_spec_overlap:own(Action, Scope) || Action <- Over],
    [witness_spec_diagnostic:warning(Location, never_matches, "no action of `over` lets an event through that this could match",
                                     "add it to `over`")
     || #{location := Location} = Action <- Conditions,
        lists:all(fun(Other) -> witness_spec_overlap:disjoint(Other, Action, Scope) end, Seen)];
never_read(_, _, _) -> [].

%% Conditions about keys, for events that have none: keys that come later do not know them.
without_key(Lets, {Over, _} = Slices, Scope) when is_list(Over), length(Over) =< ?MAX_BRANCHES ->
    [witness_spec_diagnostic:warning(Location, without_key,
        ["this does not hold at events before the first one with ", list_names(Used), ": `over` lets some through without it"],
        ["ask without ", list_names(Used), ", or let all actions of `over` bind the variables of `per`"])
     || {#{location := Location}, Used} <- witness_spec_let:about_keys(Lets, Slices, Scope)];
without_key(_, _, _) -> [].

%% The value of nothing is the atom `none`, which is greater than any number.
compares_none(Property, Values) ->
    Perhaps = [Name || Name := Kinds <- Values, lists:member(atom, Kinds), lists:member(float, Kinds)],
    [witness_spec_diagnostic:warning(witness_spec_scan:location(Variable), compares_none,
        ["this is true of `none`, too: where nothing was counted, ", quote(Name), " is `none`, which is greater than any number"],
        ["put `is_number(", witness_spec_let:written(Name), ")` in front"])
     || Perhaps =/= [], #{guard := Guard} <- witness_spec_parse:property_actions(Property),
        Tests <- witness_spec_let:unasked(Guard),
        Every <- [lists:flatmap(fun witness_spec_guard:conjuncts/1, Tests)], Test <- Every,
        {var, _, Name} = Variable <- greater(Test), lists:member(Name, Perhaps),
        not lists:any(fun(Other) -> excludes_none(Other, Name) end, Every)].

greater({op, _, Op, Greater, _}) when Op =:= '>'; Op =:= '>=' -> [Greater];
greater({op, _, Op, _, Greater}) when Op =:= '<'; Op =:= '=<' -> [Greater];
greater(_) -> [].

excludes_none({call, _, {atom, _, Test}, [{var, _, Name}]}, Name) -> lists:member(Test, [is_number, is_integer, is_float]);
excludes_none({op, _, Op, {var, _, Name}, {atom, _, none}}, Name) -> Op =:= '=/=' orelse Op =:= '/=';
excludes_none(_, _) -> false.

types(Matched, Types) ->
    lists:foldr(fun(One, {Known, Findings}) ->
        case Types(One) of
            {ok, Found} -> {[Found | Known], Findings};
            {never, Finding} -> {Known, [Finding | Findings]}
        end
    end, {[], []}, Matched).

join_types([]) -> #{};
join_types([First | Others]) -> lists:foldl(fun witness_spec_guard:join/2, First, Others).

%% `per` and `over`.
slices(#{signatures := Signatures, per := Per, per_at := Places} = Property, Scope, Partly) ->
    Variables = lists:zip(Per, Places),
    Names = ordsets:from_list(Per),
    Bound = ordsets:union([witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Signatures]),
    [witness_spec_diagnostic:error(Location, bound_per,
        ["the variable ", quote(Name), " of `per` is bound by a signature"],
        "it has one value for the whole monitor; the variables of `per` get theirs from the actions of `over`") ||
     {Name, Location} <- Variables, ordsets:is_element(Name, Bound)]
        ++ [witness_spec_diagnostic:error(Location, duplicate_per,
                [quote(Name), " stands in `per` already"], "name each variable once") ||
            {Name, Location} <- Variables -- lists:ukeysort(1, Variables)]
        ++ lists:append([check_seen(Action, Names, Scope, Partly) || Action <- over(Property)])
        ++ unused(Variables, Names, over(Property)).

check_seen(#{location := Location, pattern := Pattern, guard := Guard}, Names, Scope, Partly) ->
    Bound = witness_spec_pattern:variables(Pattern),
    Missing = ordsets:subtract(Names, Bound),
    [witness_spec_diagnostic:error(Location, incomplete_per,
        ["this action binds ", list_names(Keys), " of `per`, but not ", list_names(Missing)],
        "an action of `over` binds all variables of `per`, or none of them") ||
     Keys <- [ordsets:intersection(Names, Bound)], Keys =/= [], Missing =/= []]
        ++ needless_time(Pattern, "an action of `over` says which events count, at any time",
                         "write `at` in the actions of the formula, as in `[_ ? request at T]`")
        ++ unknown(Pattern, Scope) ++ check_bound(Guard, ordsets:union(Scope, Bound), Partly)
        ++ partly(Pattern, ordsets:union(Scope, Names), Partly).

needless_time({tuple, _, Elements}, Text, Hint) ->
    [witness_spec_diagnostic:error(witness_spec_scan:location(Variable), needless_time, Text, Hint)
     || {var, _, Time} = Variable <- [lists:last(Elements)], Time =/= '_'];
needless_time(_, _, _) -> [].

unused([], _, _) -> [];
unused([{_, Location} | _], Names, Actions) ->
    [witness_spec_diagnostic:error(Location, unused_per, ["no action of `over` binds ", list_names(Names)],
        "an instance begins with an event that gives the variables of `per` their values") ||
     witness_spec_let:unkeyed(Actions, Names) =:= Actions].

list_names([Name]) -> quote(Name);
list_names(Names) ->
    {Front, [Last]} = lists:split(length(Names) - 1, Names),
    [lists:join(", ", [quote(Name) || Name <- Front]), " and ", quote(Last)].

quote(Name) -> witness_spec_diagnostic:quote(witness_spec_let:written(Name)).

%% A `let` knows those in front of it.
lets(#{lets := Lets} = Property, Scope, Partly) ->
    Names = ordsets:union(Scope, witness_spec_let:names(Lets)),
    {Found, {_, Defined}} = lists:mapfoldl(fun(#{name := Name, location := Location} = Let, {Known, Before}) ->
        Taken = [witness_spec_diagnostic:error(Location, bound_let, [quote(Name), " has a value already"],
                                               "a `let` is a new variable: give it another name")
                 || ordsets:is_element(Name, Known)],
        {Taken ++ let_parameters(Let, Names)
             ++ lists:flatmap(fun(Action) -> condition(Action, Let, Known, Partly) end, witness_spec_parse:let_actions([Let]))
             ++ summed(Let, Known, Partly) ++ check_uses([maps:with([condition, since, 'of'], Let)], Before),
         {ordsets:add_element(Name, Known), Before#{atom_to_list(Name) => Let}}}
    end, {Scope, #{}}, Lets),
    lists:append(Found) ++ check_uses(maps:get(formula, Property, []), Defined)
        ++ check_uses([maps:get(Key, Property) || Key <- [signatures, over, among]], none) ++ unused_lets(Property).

%% The uses of `let`s with variables. Elsewhere than in `let`s and formulas there are none, and their names are those of other
%% variables.
check_uses(Part, Lets) ->
    lists:append([case Lets of
        #{Written := Let} -> check_use(Written, Count, Let, Location);
        _ when Count > 0 ->
            [witness_spec_diagnostic:error(Location, unknown_let,
                [witness_spec_diagnostic:quote(Written), " is no `let` that is known here, and has arguments"],
                ["as in `let ", Written, "(User) = once {_ ? {login, User}}`, in front of what uses it"])];
        _ -> []
    end || {Name, Count, Location} <- witness_spec_let:uses(Part), Written <- [witness_spec_let:written(Name)]]).

check_use(Written, Count, #{parameters := Parameters} = Let, Location) when Count =/= length(Parameters) ->
    Name = witness_spec_diagnostic:quote(Written),
    [witness_spec_diagnostic:error(Location, wrong_arguments,
        case {Parameters, Count} of
            {[], _} -> [Name, " has one value, and takes no arguments"];
            {_, 0} ->
                Each = list_names(witness_spec_let:parameters(Let)),
                [Name, " has a value for each ", Each, ", and stands without arguments here"];
            {[_], _} -> [Name, io_lib:format(" has one variable, and ~b arguments here", [Count])];
            _ -> [Name, io_lib:format(" has ~b variables, and not ~b", [length(Parameters), Count])]
        end,
        case Parameters of
            [] -> ["one with a value for each user has its variable behind its name, as `let ", Written, "(User) = ...`"];
            _ -> ["write `", written_let(Let), "`, with a value for each"]
        end)];
check_use(_, _, _, _) -> [].

written_let(#{name := Name, parameters := []}) -> atom_to_list(Name);
written_let(#{name := Name} = Let) ->
    [atom_to_list(Name), "(", lists:join(", ", [atom_to_list(Parameter) || Parameter <- witness_spec_let:parameters(Let)]), ")"].

let_parameters(#{parameters := Parameters} = Let, Taken) ->
    [witness_spec_diagnostic:error(Location, bound_let, [quote(Name), " has a value already"],
                                   "a variable of a `let` is a new one: give it another name")
     || {Name, Location} <- Parameters, ordsets:is_element(Name, Taken)]
        ++ [witness_spec_diagnostic:error(Location, bound_let, [quote(Name), " is a variable of this `let` already"],
                                          "name each variable once")
            || {Name, Location} <- Parameters -- lists:ukeysort(1, Parameters)]
        ++ never_bound(Let).

%% Without an event that is about it, each valuation has the same value.
never_bound(#{name := Name, parameters := [{First, Location} | _]} = Let) ->
    Names = ordsets:from_list(witness_spec_let:parameters(Let)),
    Asked = witness_spec_pattern:variables(witness_spec_let:about_all(Let)),
    [witness_spec_diagnostic:error(Location, unbound_variable, ["no condition of ", quote(Name), " binds ", quote(First)],
        "an action in braces binds it, as in `{_ ? {login, User}}`, or a condition asks another `let` for it, as in `not Gone(User)`")
     || ordsets:is_disjoint(Names, Asked),
        lists:all(fun(#{pattern := Pattern}) -> ordsets:is_disjoint(Names, witness_spec_pattern:variables(Pattern)) end,
                  witness_spec_parse:let_actions([Let]))];
never_bound(_) -> [].

condition(#{pattern := Pattern, location := Location} = Action, Let, Known, Partly) ->
    #{guard := Guard} = all_of(Action, Let),
    Bound = witness_spec_pattern:variables(Pattern),
    Names = ordsets:from_list(witness_spec_let:parameters(Let)),
    needless_time(Pattern, "a condition of a `let` has no time of its own",
                  "leave `at` out; `within` says from when on events count, as in `once within 5 s {_ ? request}`")
        ++ [witness_spec_diagnostic:error(Location, incomplete_let,
                ["this action binds ", list_names(Both), " of ", witness_spec_diagnostic:quote(written_let(Let)), ", but not ",
                 list_names(ordsets:subtract(Names, Both))],
                "an action of a `let` binds all of its variables, or none: give what is about fewer variables a `let` of its own")
            || Both <- [ordsets:intersection(Names, Bound)], Both =/= [], Both =/= Names]
        ++ unknown(Pattern, Known) ++ check_bound(Guard, ordsets:union(Known, Bound), Partly,
            case witness_spec_let:binds(Action, Let) of
                true -> "a condition knows the variables of its pattern, of the signatures, of `per`, and of the `let`s in front";
                false -> for_all(Let)
            end)
        ++ partly(Pattern, Known, Partly).

for_all(Let) ->
    ["this condition is about all values of the variables of ", witness_spec_diagnostic:quote(written_let(Let)),
     ", and asks only `let`s that have all of them as arguments; ask others in the guard of an action that binds them"].

%% A condition that is about all valuations may ask other `let`s for each of them.
all_of(#{guard := Guard} = Action, Let) ->
    case witness_spec_let:binds(Action, Let) of
        true -> Action;
        false -> Action#{guard := witness_spec_let:without_asked(Guard, Let)}
    end.

%% An expression knows what each of the actions binds.
summed(#{condition := Condition, 'of' := {Expr, _}} = Let, Known, Partly) ->
    Bound = ordsets:intersection([witness_spec_pattern:variables(Pattern) || #{pattern := Pattern} <- Condition]),
    Asking = case lists:all(fun(Action) -> witness_spec_let:binds(Action, Let) end, Condition) of
        true -> Expr;
        false -> witness_spec_let:without_asked(Expr, Let)
    end,
    check_bound([Asking], ordsets:union(Known, Bound), Partly, case Asking of
        Expr -> "what stands in front of `of` knows what all actions behind it bind, and what they know";
        _ -> for_all(Let)
    end);
summed(_, _, _) -> [].

unused_lets(#{lets := Lets} = Property) ->
    Used = witness_spec_let:used(witness_spec_parse:property_actions(Property)),
    Mentioned = witness_spec_let:variables(Lets),
    [witness_spec_diagnostic:warning(Location, unused_let, [quote(Name), " is not used"],
        ["use it in or behind an action of the formula, as in `[{_ ? _ when ", written_let(Let),
         case lists:member(Value, [previously, once, since]) of true -> ""; false -> " > 3" end, "}] ff`, or leave it out"])
     || #{name := Name, location := Location, value := Value} = Let <- Lets,
        not ordsets:is_element(atom_to_list(Name), Used), not ordsets:is_element(Name, Mentioned)].

%% `loops` maps the recursion variables in scope to their places and to whether there is an action in between.
formula({Constant, _}, _, Findings) when Constant =:= tt; Constant =:= ff ->
    Findings;
formula({var, {Location, _}, Name, Values}, #{loops := Loops} = Context, Findings) ->
    Found = check_values(Values, Context) ++ Findings,
    case Loops of
        #{Name := {guarded, _, Parameters}} when length(Parameters) =:= length(Values) ->
            Found;
        #{Name := {guarded, _, Parameters}} ->
            [witness_spec_diagnostic:error(Location, wrong_parameters,
                [quote(Name), case Parameters of
                    [] -> " has no parameters";
                    [_] -> " has one parameter";
                    _ -> io_lib:format(" has ~b parameters", [length(Parameters)])
                end, io_lib:format(", and not ~b", [length(Values)])],
                case Parameters of
                    [] -> ["they are written behind the name where it is bound, as in `max ", atom_to_list(Name), "(N = 0).`"];
                    _ -> ["each gets a value here: `", atom_to_list(Name), $(, lists:join(", ", [atom_to_list(P) || P <- Parameters]), ")`"]
                end) | Found];
        #{Name := {{beyond, Word, {Line, Column}}, _, _}} ->
            [witness_spec_diagnostic:error(Location, timed_loop,
                [quote(Name), " begins outside of the `", atom_to_list(Word), "` around it"],
                io_lib:format("the `~ts` of line ~b, column ~b would be about all of the loop: write `(f and ~ts)`, with `~ts ...` for `f`",
                              [Word, Line, Column, Name, Word])) | Found];
        #{Name := {unguarded, _, _}} ->
            [witness_spec_diagnostic:error(Location, unguarded_recursion,
                ["the recursion variable ", quote(Name), " is reached without an action in between"],
                ["put a modality in front of it, as in `[P ? _] ", atom_to_list(Name), "`"]) | Found];
        _ ->
            [witness_spec_diagnostic:error(Location, unbound_recursion_variable,
                ["the recursion variable ", quote(Name), " is not bound"],
                ["it is bound by a `max ", atom_to_list(Name), ".` or `min ", atom_to_list(Name), ".` around it; ",
                 "`max X.(f)` ends at its parenthesis"]) | Found]
    end;
formula({Modality, {Location, _}, Action, Formula}, #{scope := Scope} = Context, Findings) when
        Modality =:= box; Modality =:= dia ->
    #{pattern := Pattern, guard := Guard} = Action,
    #{partly := Partly, loops := Loops} = Context,
    Values = ordsets:from_list(maps:get(values, Action, [])),
    Inner = ordsets:union([Scope, witness_spec_pattern:variables(Pattern), Values]),
    Found = check_dialect(Modality, Location, Context) ++ unknown(Pattern, Scope) ++ check_bound(Guard, Inner, Partly)
        ++ partly(Pattern, Scope, Partly) ++ check_time(Pattern, ordsets:union(Scope, Values)),
    formula(Formula, Context#{scope := Inner, partly := ordsets:subtract(Partly, Inner),
                              loops := #{Name => guarded(Loop) || Name := Loop <- Loops}}, Found ++ Findings);
formula({Timed, {Location, _}, {duration, Duration}, [], Formula}, #{loops := Loops} = Context, Findings) ->
    Beyond = #{Name => setelement(1, Loop, {beyond, Timed, Location}) || Name := Loop <- Loops},
    formula(Formula, Context#{loops := Beyond},
            check_dialect(Timed, Location, Context) ++ check_longer(Timed, Duration, Formula) ++ Findings);
formula({Fixpoint, {Location, _}, Name, Parameters, Formula}, #{loops := Loops} = Context, Findings) when
        Fixpoint =:= max; Fixpoint =:= min ->
    {Inner, Found} = lists:foldl(fun parameter/2, {Context, []}, Parameters),
    formula(Formula, Inner#{loops := Loops#{Name => {unguarded, Location, [P || {P, _, _} <- Parameters]}}},
            check_dialect(Fixpoint, Location, Context) ++ check_hidden(Name, Location, Loops) ++ Found ++ Findings);
formula({Operator, {Location, _}, Formulas}, Context, Findings) ->
    lists:foldl(fun(Formula, Found) -> formula(Formula, Context, Found) end,
                check_dialect(Operator, Location, Context) ++ overlaps(Operator, Formulas, Context) ++ Findings, Formulas).

guarded({unguarded, _, _} = Loop) -> setelement(1, Loop, guarded);
guarded(Loop) -> Loop.

%% Events have the same time by chance only.
check_time({tuple, _, Elements}, Scope) ->
    {Data, [{var, _, Time} = Variable]} = lists:split(length(Elements) - 1, Elements),
    [witness_spec_diagnostic:warning(witness_spec_scan:location(Variable), bound_time,
        [quote(Time), " has a value already, so this action matches at exactly this time only"],
        ["give the time a new name, and compare both in a guard: `when U - ", witness_spec_let:written(Time), " =< 5 s`"]) ||
     Time =/= '_', ordsets:is_element(Time, ordsets:union(Scope, witness_spec_pattern:variables(Data)))];
check_time(_, _) -> [].    % `else` has no time

%% A deadline that never passes, since the one around it passes first.
check_longer(Timed, Duration, {Inner, {Location, _}, {duration, Longer}, [], _}) when Longer >= Duration ->
    [witness_spec_diagnostic:warning(Location, never_passes, "this deadline can never pass",
        ["the one of `", atom_to_list(Timed), "` around it passes first; `", atom_to_list(Inner),
         "` behind an action begins with that action"])];
check_longer(Timed, Duration, {_, _, Formulas}) when is_list(Formulas) ->
    lists:flatmap(fun(Formula) -> check_longer(Timed, Duration, Formula) end, Formulas);
check_longer(_, _, _) -> [].

check_hidden(Name, Location, Loops) ->
    case Loops of
        #{Name := {_, {Line, Column}, _}} ->
            [witness_spec_diagnostic:warning(Location, hidden_recursion_variable,
                ["this ", quote(Name), " hides another one"],
                io_lib:format("the other one is bound in line ~b, column ~b", [Line, Column]))];
        _ ->
            []
    end.

%% A parameter knows those in front of it.
parameter({Name, Location, Value}, {#{scope := Scope, partly := Partly, lets := Lets} = Context, Findings}) ->
    Bound = [witness_spec_diagnostic:error(Location, bound_parameter, [quote(Name), " has a value already"],
                 "a parameter is a new variable: give it another name") || ordsets:is_element(Name, ordsets:union(Scope, Lets))],
    {Context#{scope := ordsets:add_element(Name, Scope), partly := ordsets:del_element(Name, Partly)},
     Bound ++ check_values([Value], Context) ++ Findings}.

check_dialect(Construct, Location, #{dialect := monitor}) when
        Construct =:= dia; Construct =:= 'or'; Construct =:= min; Construct =:= within; Construct =:= during ->
    Written = case Construct of dia -> "<...>"; _ -> atom_to_list(Construct) end,
    [witness_spec_diagnostic:error(Location, not_shml,
        ["`", Written, "` is not part of sHML, which `monitor` stands for"],
        "use `check` for the whole logic")];
check_dialect(_, _, _) ->
    [].

check_bound(Guard, Bound, Partly) ->
    check_bound(Guard, Bound, Partly, "a guard knows the variables of its pattern, of the signatures, and of the actions in front of it").

check_values(Values, #{scope := Scope, partly := Partly, lets := Lets}) ->
    Known = "a value knows the variables of the signatures, of the actions in front of it, and of parameters",
    AtEvent = "a `let` has a value at an event: use it in or behind an action",
    check_bound([{var, erl_anno:new(Place), Name} || {Name, Count, Place} <- witness_spec_let:uses(Values), Count > 0,
                                                     ordsets:is_element(Name, Lets)], Scope, Partly, AtEvent)
        ++ check_bound(Values, Scope, Partly, case ordsets:is_disjoint(Lets, witness_spec_pattern:variables(Values)) of
            true -> Known;
            false -> AtEvent
        end).

check_bound(Exprs, Bound, Partly, Hint) ->
    [case ordsets:is_element(Name, Partly) of
        true ->
            witness_spec_diagnostic:error(Location, unbound_variable,
                [quote(Name), " is not bound by all of the signatures"],
                "a variable of the signatures can be used if each of them binds it");
        false ->
            witness_spec_diagnostic:error(Location, unbound_variable, ["the variable ", quote(Name), " is not bound"],
                Hint)
     end || {Name, Location} <- witness_spec_pattern:occurrences(witness_spec_let:uncalled(Exprs)),
            not ordsets:is_element(Name, Bound)].

%% Keys of maps and sizes of binaries are evaluated before the pattern binds anything, except the binary's own parts.
unknown(Pattern, Scope) ->
    [witness_spec_diagnostic:error(Location, unbound_variable, ["the variable ", quote(Name), " is not bound"],
        "the key of a map and the size of a binary need a value that is known before the pattern") ||
     {Name, Location} <- check_keys(Pattern, Scope)].

check_keys({map, _, Fields}, Known) ->
    lists:flatmap(fun({map_field_exact, _, Key, Value}) -> missing(Key, Known) ++ check_keys(Value, Known) end, Fields);
check_keys({bin, _, Segments}, Known) ->
    {Missing, _} = lists:mapfoldl(fun({bin_element, _, Value, Size, _}, Before) ->
        {missing(Size, Before), ordsets:union(Before, witness_spec_pattern:variables(Value))}
    end, Known, Segments),
    lists:append(Missing);
check_keys({tuple, _, Elements}, Known) -> lists:flatmap(fun(Element) -> check_keys(Element, Known) end, Elements);
check_keys({cons, _, Head, Tail}, Known) -> check_keys(Head, Known) ++ check_keys(Tail, Known);
check_keys({match, _, Left, Right}, Known) -> check_keys(Left, Known) ++ check_keys(Right, Known);
check_keys({op, _, _, Left, Right}, Known) -> check_keys(Left, Known) ++ check_keys(Right, Known);
check_keys(_, _) -> [].

missing(Expr, Known) ->
    [Use || {Name, _} = Use <- witness_spec_pattern:occurrences(Expr), not ordsets:is_element(Name, Known)].

partly(Pattern, Scope, Partly) ->
    [witness_spec_diagnostic:warning(Location, partly_bound,
        [quote(Name), " is a new variable here: not all of the signatures bind it"],
        "a variable of the signatures can be used if each of them binds it") ||
     {Name, Location} <- witness_spec_pattern:occurrences(Pattern),
     not ordsets:is_element(Name, Scope), ordsets:is_element(Name, Partly)].

overlaps('and', Formulas, #{dialect := monitor, scope := Scope}) when length(Formulas) =< ?MAX_BRANCHES ->
    later([Action || {box, _, Action, _} <- Formulas], Scope);
overlaps(_, _, _) ->
    [].

later([#{location := {Line, Column}} = Action | Actions], Scope) ->
    [witness_spec_diagnostic:warning(Location, overlapping_branches,
        "this branch can match the same event as an earlier one",
        io_lib:format("the earlier one is in line ~b, column ~b; both will have to hold", [Line, Column])) ||
     #{location := Location} = Other <- Actions, witness_spec_overlap:overlapping(Action, Other, Scope)]
        ++ later(Actions, Scope);
later([], _) ->
    [].
