-module(witness_option).
-moduledoc """
Options as data: what an option is, whether a value is right, what was expected otherwise, and the defaults.

The options themselves are in `m:witness_option_schema`. What depends on several options, or on code, files and processes, is
checked by the module that takes the options.
""".

-export([check/2, defaults/1, find/2, expected/1, format_error/1]).

-export_type([option/0, type/0, unit/0, flag/0, value/0, text/0, error/0, reason/0]).

-doc """
An option of a function that takes a map.

- `type`: its values; `expected`: what an error says if the text of the type says too little;
- `default`: a value, or as text what it depends on (`computed`). Without either the option may be missing, unless it is `required`;
- `systems`: of an option of `witness:start/1`, the systems that it is for; without it all;
- `not_with`, `only_with`: what excludes it, or is needed for it;
- `flags`: the option on the command line, once for each group of commands that says the same of it.
""".
-type option() :: #{name := atom(), type := type(), expected => string(), unit => unit(),
                    default => term(), computed => string(), required => true,
                    systems => [started | attached | log | recording, ...],
                    not_with => [redact | inline, ...], only_with => inline,
                    flags => [flag(), ...]}.

-doc """
The values of an option. `limit`: a number above 0, or `infinity`; `path` and `folder`: a name that is not empty; `is`: this term;
`any`: the module that takes the option checks it.
""".
-type type() :: boolean | pos_integer | non_neg_integer | limit | {at_least, integer()}
              | atom | application | pid | local_pid | binary | text
              | file | path | folder
              | {one_of, [atom(), ...]} | {is, term()} | {function, arity()}
              | {list, type()} | {nonempty_list, type()} | {tuple, [type()]} | {either, [type(), ...]} | any.

-doc "What a number counts. Times and sizes have the units of Erlang and OTP.".
-type unit() :: milliseconds | bytes | atoms | slices | parts | words | steps | verdicts | events | events_per_second
              | violations_per_second.

-doc """
An argument of these `commands`.

- `flag`: as it is written; without it the argument is known by its place;
- `name`: the key in the parsed arguments, that of the option if it is missing;
- `argument`: what the help calls the value; `value`: how it is read, which follows from the type of the option if it is missing;
- `repeated`: it may be given several times, and the value is a list;
- `default`: what the command line passes on without the flag; `otherwise`: the same, if the command must know that it was missing;
- `text`: for the help.
""".
-type flag() :: #{commands := [atom(), ...], name => atom(), flag => string(), short => char(), argument => string(),
                  value => value(), repeated => true, required => false, default => term(), otherwise => term(), text := text()}.

-doc """
How the text of an argument becomes a value: `seconds` and `seconds_or_zero` are milliseconds afterwards, `megabytes` bytes, and `size_or_time` is
`{bytes, N}` or `{seconds, N}`; `list_of` are names with commas between them.
""".
-type value() :: boolean | string | {at_least, integer()} | {one_of, [atom(), ...]} | {list_of, [atom(), ...]}
               | seconds | seconds_or_zero | megabytes | size_or_time.

-doc "`default` stands for the default, `{default, Value, Text}` for this text if `Value` is the default.".
-type text() :: binary() | [binary() | default | {default, term(), binary()}].

-doc "What is wrong with options.".
-type reason() :: {bad_option, Name :: atom(), Expected :: string()} | {unknown_option, term()} | {missing_option, atom()}.

-type error() :: {?MODULE, reason()}.

-doc "Whether all options are known, of their types, and none is missing that is required.".
-spec check(Options :: term(), [option()]) -> ok | {error, error()}.
check(Options, Schema) when is_map(Options) ->
    case [Name || #{name := Name, required := true} <- Schema, not is_map_key(Name, Options)] of
        [Name | _] -> {error, {?MODULE, {missing_option, Name}}};
        [] -> check_each(maps:to_list(Options), Schema)
    end;
check(_, _) -> {error, {?MODULE, {bad_option, options, "a map"}}}.

check_each([], _) -> ok;
check_each([{Name, Value} | Options], Schema) ->
    case find(Name, Schema) of
        {ok, #{type := Type} = Option} ->
            case is_valid(Type, Value) of
                true -> check_each(Options, Schema);
                false -> {error, {?MODULE, {bad_option, Name, expected(Option)}}}
            end;
        error -> {error, {?MODULE, {unknown_option, Name}}}
    end.

-doc "The defaults that are values.".
-spec defaults([option()]) -> #{atom() => term()}.
defaults(Schema) -> #{Name => Default || #{name := Name, default := Default} <- Schema}.

-doc "The option with this name.".
-spec find(term(), [option()]) -> {ok, option()} | error.
find(Name, Schema) ->
    case [Option || #{name := Other} = Option <- Schema, Other =:= Name] of
        [Option] -> {ok, Option};
        [] -> error
    end.

-doc "Which values an option takes, for people.".
-spec expected(option()) -> string().
expected(#{expected := Text}) -> Text;
expected(#{type := Type}) -> describe(Type).

describe(boolean) -> "true or false";
describe(pos_integer) -> "a number above 0";
describe(limit) -> "a number above 0";
describe(non_neg_integer) -> "a number, 0 or more";
describe(application) -> "the name of an application";
describe(pid) -> "a process";
describe(local_pid) -> "a process of this node";
describe(File) when File =:= file; File =:= path -> "the name of a file";
describe(folder) -> "the name of a folder";
describe({one_of, Values}) -> named(Values, " or ");
describe({nonempty_list, {one_of, Values}}) -> describe({list, {one_of, Values}}) ++ " that is not empty";
describe({list, {one_of, Values}}) -> "a list of " ++ named(Values, " and ");
describe({function, 1}) -> "a function of one argument";
describe({list, application}) -> "a list of names of applications";
describe({list, file}) -> "a list of file names";
describe({list, folder}) -> "a list of names of folders";
describe({list, pid}) -> "a list of processes";
describe({list, text}) -> "a list of strings".

named(Values, Before) ->
    {Others, [Last]} = lists:split(length(Values) - 1, [atom_to_list(Value) || Value <- Values]),
    lists:flatten(lists:join(Before, [lists:join(", ", Others) || Others =/= []] ++ [Last])).

is_valid(any, _) -> true;
is_valid(boolean, Value) -> is_boolean(Value);
is_valid(pos_integer, Value) -> is_integer(Value) andalso Value > 0;
is_valid(non_neg_integer, Value) -> is_integer(Value) andalso Value >= 0;
is_valid(limit, Value) -> Value =:= infinity orelse is_valid(pos_integer, Value);
is_valid({at_least, Least}, Value) -> is_integer(Value) andalso Value >= Least;
is_valid(Atom, Value) when Atom =:= atom; Atom =:= application -> is_atom(Value);
is_valid(binary, Value) -> is_binary(Value);
is_valid(pid, Value) -> is_pid(Value);
is_valid(local_pid, Value) -> is_pid(Value) andalso node(Value) =:= node();
is_valid(text, Value) -> io_lib:printable_unicode_list(Value);
is_valid(file, Value) -> is_list(Value) orelse is_binary(Value);
is_valid(Name, Value) when Name =:= path; Name =:= folder ->
    Value =/= [] andalso Value =/= <<>> andalso (is_binary(Value) orelse io_lib:printable_unicode_list(Value));
is_valid({one_of, Values}, Value) -> lists:member(Value, Values);
is_valid({is, Term}, Value) -> Value =:= Term;
is_valid({function, Arity}, Value) -> is_function(Value, Arity);
is_valid({list, Type}, Value) -> is_list_of(Type, Value);
is_valid({nonempty_list, Type}, Value) -> Value =/= [] andalso is_list_of(Type, Value);
is_valid({tuple, Types}, Value) ->
    is_tuple(Value) andalso tuple_size(Value) =:= length(Types)
        andalso lists:all(fun({Type, Element}) -> is_valid(Type, Element) end, lists:zip(Types, tuple_to_list(Value)));
is_valid({either, Types}, Value) -> lists:any(fun(Type) -> is_valid(Type, Value) end, Types).

is_list_of(Type, [Value | Values]) -> is_valid(Type, Value) andalso is_list_of(Type, Values);
is_list_of(_, Rest) -> Rest =:= [].

-doc "An error of `check/2` for people.".
-spec format_error(reason()) -> unicode:chardata().
format_error({bad_option, Name, Expected}) -> io_lib:format("option ~ts: expected ~ts", [Name, Expected]);
format_error({unknown_option, Name}) -> io_lib:format("unknown option ~tp", [Name]);
format_error({missing_option, Name}) -> io_lib:format("option ~ts is expected, and not there", [Name]).
