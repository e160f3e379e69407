-module(witness_cli_options).
-moduledoc """
The arguments of commands for `m:argparse`: those of options (`m:witness_option_schema`), and those that only the command line has.
The help, with the defaults in it, and how a text becomes a value follow from their declarations.
""".

-export([arguments/2, properties/0, default/2, json/1, report/0, must_decide/0, mix/1, for/1, times/0, name_option/1]).

-doc "An argument that only the command line has. Its value is a boolean if the help has no name for it.".
-type own() :: #{name := atom(), flag => string(), short => char(), argument => string(), value => witness_option:value(),
                 repeated => true, required => false, text := witness_option:text()}.

-doc "The arguments of a command, in this order: options by their names, others as they are declared here.".
-spec arguments(Command :: atom(), [atom() | own()]) -> [map()].
arguments(Command, Arguments) -> [argument(declaration(Command, Argument)) || Argument <- Arguments].

-doc "The options for the properties to check, for signatures, and for the folders of code.".
-spec properties() -> [atom()].
properties() -> [specs, monitors, signatures, pa, include, redact, syntax, max_slices, slice_idle, max_obligations, max_state].

-doc "What the command passes on without this flag, or does itself.".
-spec default(Command :: atom(), Name :: atom()) -> term().
default(Command, Name) -> shown_default(declaration(Command, Name)).

-doc "The argument for JSON instead of text.".
-spec json(binary()) -> own().
json(Text) -> #{name => json, flag => "--json", text => Text}.

-doc "The argument for a report.".
-spec report() -> own().
report() ->
    #{name => report, flag => "--report", argument => "DIR",
      text => ~"write what was found as a page for a browser too, DIR/report.html (docs/report.md)"}.

-doc "The argument for a result in which nothing is left undecided.".
-spec must_decide() -> own().
must_decide() ->
    #{name => must_decide, flag => "--must-decide",
      text => ~"no OK with an undecided monitor: where nothing is violated and one is undecided, the exit code is 3"}.

-doc "The argument for a project of Mix; the verb says what is done with its application.".
-spec mix(Verb :: binary()) -> own().
mix(Verb) ->
    #{name => mix, flag => "--mix", argument => "DIR",
      text => [Verb, ~" the application of the Mix project in this folder, compiled and configured as by mix run; --app names ",
               ~"one of an umbrella project; mod:fun(args) is called when it has started"]}.

-doc "The argument for a planned end; the text says what is done then.".
-spec for(binary()) -> own().
for(Text) -> #{name => for, flag => "--for", argument => "SECONDS", value => seconds, text => [Text, ~" after this time: a planned end"]}.

-doc "The arguments that bound how long a run takes.".
-spec times() -> [own()].
times() ->
    [for(~"stop watching"),
     #{name => timeout, flag => "--timeout", argument => "SECONDS", value => seconds,
       text => ~"break off after this time: an error (exit code 3); monitors that are behind then have as long again"}].

%% A flag is named after its option, unless it says otherwise.
declaration(_, #{} = Own) -> Own;
declaration(Command, Name) ->
    [Declaration] = [Declaration || #{name := Option, flags := Flags} = Declared <- witness_option_schema:flags(),
                                    #{commands := Commands} = Flag <- Flags, lists:member(Command, Commands),
                                    Declaration <- [maps:merge(#{name => Option, option => Declared}, Flag)],
                                    maps:get(name, Declaration) =:= Name],
    Declaration.

argument(#{name := Name, text := Text} = Declaration) ->
    Value = value(Declaration),
    Argument = #{name => Name, help => {usage(Value, Declaration), [text(Text, Declaration)]}, type => type(Value)},
    maps:merge(maps:merge(Argument, place(Declaration)), fixed_default(Value, Declaration)).

place(#{flag := [$- | Long], repeated := true} = Declaration) -> (maps:with([short], Declaration))#{long => Long, action => append};
place(#{flag := [$- | Long]} = Declaration) -> (maps:with([short], Declaration))#{long => Long};
place(#{repeated := true}) -> #{nargs => nonempty_list};
place(Declaration) -> maps:with([required], Declaration).

fixed_default(_, #{default := Default}) -> #{default => Default};
fixed_default(boolean, _) -> #{default => false};
fixed_default(_, _) -> #{}.

value(#{value := Value}) -> Value;
value(#{option := #{type := Type}}) ->
    case Type of
        boolean -> boolean;
        {one_of, _} -> Type;
        {Lists, {one_of, Atoms}} when Lists =:= list; Lists =:= nonempty_list -> {list_of, Atoms};
        _ when Type =:= pos_integer; Type =:= limit -> {at_least, 1};
        _ -> string
    end;
value(#{argument := _}) -> string;
value(#{}) -> boolean.

type({at_least, Least}) -> {integer, [{min, Least}]};
type({one_of, Atoms}) -> {atom, Atoms};
type({list_of, Atoms}) -> {custom, fun(Text) -> list_of(Atoms, Text) end};
type(seconds) -> {custom, fun seconds/1};
type(seconds_or_zero) -> {custom, fun seconds_or_zero/1};
type(megabytes) -> {custom, fun megabytes/1};
type(size_or_time) -> {custom, fun size_or_time/1};
type(Type) when Type =:= boolean; Type =:= string -> Type.

usage(Value, Declaration) ->
    Written = [[[$-, Short, named(Value, Declaration), " | "] || #{short := Short} <- [Declaration]],
               [Flag || #{flag := Flag} <- [Declaration]], named(Value, Declaration)],
    Optional = is_map_key(flag, Declaration) orelse not maps:get(required, Declaration, true),
    lists:flatten([case Optional of true -> [$[, Written, $]]; false -> Written end,
                   ["..." || #{repeated := true} <- [Declaration]]]).

named(boolean, _) -> "";
named(Value, #{flag := _} = Declaration) -> [$\s | argument_name(Value, Declaration)];
named(Value, Declaration) -> argument_name(Value, Declaration).

argument_name(_, #{argument := Name}) -> Name;
argument_name({one_of, Atoms}, _) -> lists:join($|, [atom_to_list(Atom) || Atom <- Atoms]).

text(Text, Declaration) ->
    unicode:characters_to_list([part(Part, Declaration) || Part <- case Text of [_ | _] -> Text; _ -> [Text] end]).

part(default, Declaration) -> in_units(value(Declaration), shown_default(Declaration));
part({default, Value, Text}, Declaration) -> case shown_default(Declaration) of Value -> Text; _ -> ~"" end;
part(Text, _) -> Text.

shown_default(#{default := Default}) -> Default;
shown_default(#{otherwise := Default}) -> Default;
shown_default(#{option := #{default := Default}}) -> Default.

in_units(seconds, Milliseconds) -> integer_to_list(Milliseconds div 1000);
in_units(megabytes, Bytes) -> integer_to_list(Bytes bsr 20);
in_units({at_least, _}, Number) -> integer_to_list(Number).

%% --- values; `badarg' is an error of the user -------------------------------------

seconds(Text) ->
    Seconds = number(Text),
    Seconds > 0 orelse error(badarg),
    max(1, milliseconds(Seconds)).

seconds_or_zero(Text) ->
    Seconds = number(Text),
    Seconds >= 0 orelse error(badarg),
    milliseconds(Seconds).

milliseconds(Seconds) when Seconds =< 4_000_000 -> round(Seconds * 1000);
milliseconds(_) -> error(badarg).

number(Text) ->
    try list_to_float(Text) catch error:badarg -> list_to_integer(Text) end.

megabytes(Text) ->
    Megabytes = list_to_integer(Text),
    Megabytes > 0 orelse error(badarg),
    Megabytes bsl 20.

list_of(Atoms, Text) ->
    Named = #{atom_to_list(Atom) => Atom || Atom <- Atoms},
    [case Named of #{Name := Atom} -> Atom; #{} -> error(badarg) end || Name <- string:split(Text, ",", all)].

size_or_time(Text) ->
    {match, [Number, Unit]} = case re:run(Text, "^([1-9][0-9]{0,8})(MB|GB|s|min|h)$", [{capture, all_but_first, list}]) of
        nomatch -> error(badarg);
        Match -> Match
    end,
    N = list_to_integer(Number),
    case Unit of
        "MB" -> {bytes, N * 1_000_000};
        "GB" -> {bytes, N * 1_000_000_000};
        "s" -> {seconds, N};
        "min" -> {seconds, N * 60};
        "h" -> {seconds, N * 3600}
    end.

-doc "An error with an option gets the flag instead of the name.".
-spec name_option(unicode:chardata()) -> unicode:chardata().
name_option(Text) ->
    case re:run(Text, "^option ([a-z_]+)(.*)$", [{capture, all_but_first, binary}, dotall, unicode]) of
        {match, [Name, Rest]} -> [~"option ", flag(Name), Rest];
        nomatch -> Text
    end.

flag(Name) ->
    case [Flag || #{name := Option, flags := [#{flag := Flag} | _]} <- witness_option_schema:flags(),
                  atom_to_binary(Option) =:= Name] of
        [Flag | _] -> Flag;
        [] -> [~"--", string:replace(Name, ~"_", ~"-", all)]
    end.
