-module(witness_spec_clocks).
-moduledoc """
Formulas with deadlines for events of which the clocks differ (docs/internals/semantics.md, *Clocks that differ*).

A formula is bounded from both sides. In the lower bound each `within` has less time and each `during` more, in the upper bound it is the
other way round. Both become one formula, `Lower or (Upper and unknown)`: if the lower bound is true, so is it, and if the upper one is
false, so is it. `unknown` is an obligation that no event decides: if it alone is left, the verdict depends on the clocks.
""".

-export([check/1, properties/2]).

-type finding() :: witness_spec_diagnostic:finding().

-doc "Errors for what compares times in other ways than `within` and `during`.".
-spec check([witness_spec_parse:property()]) -> [finding()].
check(Properties) -> lists:append([windows(Property) ++ times(Property) || Property <- Properties]).

windows(#{lets := Lets}) ->
    [witness_spec_diagnostic:error(Location, clocks_window,
        ["which events are in the window of ", quote(Name), " would depend on clocks that may differ (`--clocks`)"],
        "a window may have a number of events, as `within 10 events`; with a window of time, check without `--clocks`")
     || #{window := {time, _}, name := Name, location := Location} <- Lets];
windows(_) -> [].

times(#{formula := Formula}) ->
    [witness_spec_diagnostic:error(Location, clocks_time,
        [quote(Name), " is the time of an event, and the clocks may differ (`--clocks`)"],
        "`within` and `during` allow for that, and comparisons of times do not: use these, or check without `--clocks`")
     || {Name, Location} <- used(Formula, [])];
times(_) -> [].

quote(Name) -> witness_spec_diagnostic:quote(witness_spec_let:written(Name)).

%% The uses of times that actions in front have bound.
used({Modality, _, #{pattern := Pattern, guard := Guard}, Formula}, Known) when Modality =:= box; Modality =:= dia ->
    {Data, Own} = case Pattern of
        {tuple, _, Elements} -> lists:split(length(Elements) - 1, Elements);
        _ -> {Pattern, []}
    end,
    Times = ordsets:union(Known, witness_spec_pattern:variables(Own)),
    uses([Data, Own], Known) ++ uses(Guard, Times) ++ used(Formula, Times);
used({var, _, _, Values}, Known) -> uses(Values, Known);
used({_, _, _, Parameters, Formula}, Known) -> uses([Value || {_, _, Value} <- Parameters], Known) ++ used(Formula, Known);
used({_, _, Formulas}, Known) -> lists:flatmap(fun(Formula) -> used(Formula, Known) end, Formulas);
used(_, _) -> [].

uses(Exprs, Known) -> [Use || {Name, _} = Use <- witness_spec_pattern:occurrences(Exprs), ordsets:is_element(Name, Known)].

-doc "The properties for clocks that differ by at most `Error` nanoseconds. Those without deadlines stay as they are.".
-spec properties([witness_spec_parse:property()], Error :: pos_integer()) -> [witness_spec_parse:property()].
properties(Properties, Error) -> [property(Property, Error) || Property <- Properties].

property(#{formula := Formula} = Property, Error) ->
    case {bound(Formula, -Error), bound(Formula, Error)} of
        {Formula, Formula} -> Property;
        {Lower, Upper} ->
            Meta = element(2, Formula),
            Property#{formula := {'or', Meta, [Lower, {'and', Meta, [Upper, {unknown, Meta}]}]}}
    end;
property(Property, _) -> Property.

bound(Formula, Error) ->
    witness_spec_abstract:rewrite(fun
        ({within, Meta, {duration, Time}, [], Inner}) -> {done, {within, Meta, {duration, Time + Error}, [], bound(Inner, Error)}};
        ({during, Meta, {duration, Time}, [], Inner}) -> {done, {during, Meta, {duration, Time - Error}, [], bound(Inner, Error)}};
        (_) -> inside
    end, Formula).
