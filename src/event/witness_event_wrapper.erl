-module(witness_event_wrapper).
-moduledoc """
Processes that start in a function of a library, which calls a function of the author's module: which arguments say what that is.

A *row* is a signature that such processes have without it, with patterns for its arguments. `'Elixir.MyServer'` may be a module
with the callbacks of a gen_server for the modules that `use MyServer`, which it starts by
`GenServer.start_link(MyServer, {module, args})`. Then this row gives the process of `Shop.Cart` the signature `Shop.Cart.init(args)`:

```elixir
{MyServer, :init, [{:module, :args}]}
```

These atoms have a meaning in a pattern:

| Atom | The argument, or the part of it |
|---|---|
| `module` | the module of the author: any atom but `nil`, `undefined`, `true` and `false` |
| `args` | the argument of the author's function; with `function` the list of its arguments |
| `function` | the function of the author's module; without `module` a fun |
| `_` | anything |

Without `function` the author's function has the name of the row's. Without `args` it has the arguments that there were.

A tuple, and a list, matches one of the same length. A map matches a map with these keys. A list of pairs with atoms as keys, inside the
list of arguments, matches a list of options with these keys. Any other term matches itself. If a row does not match, the next one for
the same function is tried. The result may be one for which there is another row.

Rows of libraries are built in. A project adds others (the option `signatures`). Native code has the same rows (`rows/1`,
`c_src/witness_native_wrapper.c`).
""".

-export([none/0, of_config/1, configured/0, for_recording/1, table/1, add/2, unwrap/2, rows/1, functions/1, exports/2]).
-export([format/1, format_error/1, format_reason/1]).

-export_type([row/0, table/0, reason/0, error/0]).

-doc "A row of a project, see above.".
-type row() :: {module(), Function :: atom(), Arguments :: [Pattern :: term()]}.

-doc "Rows that were checked, by the functions and arities that they are for.".
-opaque table() :: #{mfa() => [{Patterns :: [term()], run()}]}.

-doc "A row for native code: a function and its arity, patterns, and what a process runs: `same`, or another function with its arity.".
-type native() :: {module(), Function :: atom(), arity(), Patterns :: [term()], same | atom(), arity()}.

%% What a process with a signature of the row runs: a function with these arguments, or another one of the same module.
-type run() :: same | {Function :: atom(), arity()}.

-doc "What is wrong with a row.".
-type reason() :: no_rows | {too_many, pos_integer()}
                | {bad_row, Row :: term(), Why :: unicode:chardata()}.

%% Rows of a project.
-define(MAX_ROWS, 100).
%% Native code keeps so many arguments.
-define(MAX_ARITY, 8).
%% Words of a row in memory. Rows of a recording come from outside, and are compared with each of its processes.
-define(MAX_ROW_WORDS, 1_000).

-type error() :: {?MODULE, reason()}.

%% The processes of libraries, as far as their modules start a function of the author's module; the last ones start it later.
-define(BUILT_IN, #{
    {supervisor, init, 1} => [{[{'_', module, args}], same}],
    {supervisor_bridge, init, 1} => [{[[module, args, '_']], same}],
    {'Elixir.DynamicSupervisor', init, 1} => [{[{module, args, '_'}], same}],
    {'Elixir.Agent.Server', init, 1} => [{[function], same}, {[{module, function, args}], same}],
    %% Before Elixir 1.15 without the ancestors.
    {'Elixir.Task.Supervised', noreply, 4} => [{['_', '_', '_', {module, function, args}], same}],
    {'Elixir.Task.Supervised', noreply, 3} => [{['_', '_', {module, function, args}], same}],
    {'Elixir.GenStage', init, 1} => [{[{module, args}], same}],
    {'Elixir.ConsumerSupervisor', init, 1} => [{[{module, args, '_'}], same}],
    {'Elixir.Broadway.Topology.Subscriber', init, 1} => [{[{module, '_', args, '_'}], same}],
    {'Elixir.Broadway.Topology.ProducerStage', init, 1} => [{[{[{module, {module, args}}], '_'}], same}],
    {'Elixir.Broadway.Topology.ProcessorStage', init, 1} => [{[[{module, module}]], {handle_message, 3}}],
    {'Elixir.Broadway.Topology.BatchProcessorStage', init, 1} => [{[[{module, module}]], {handle_batch, 4}}],
    {'Elixir.DBConnection.Connection', init, 1} => [{[{module, '_', '_', '_'}], {connect, 1}}],
    {'Elixir.Phoenix.Tracker.Shard', init, 1} => [{[[module, args, '_']], same}]}).

-doc "No rows of a project.".
-spec none() -> table().
none() -> #{}.

-doc "Those of a run, in the configuration of its parts.".
-spec of_config(#{signatures => table(), _ => _}) -> table().
of_config(Config) -> maps:get(signatures, Config, none()).

-doc "Those that the project of this node configures. They are not checked.".
-spec configured() -> [row()] | term().
configured() -> application:get_env(witness, signatures, []).

-doc """
The options of what makes a recording, with the rows that they name, or else the configured ones. It keeps them, so that all that reads it
has the same signatures. Without rows it is as before there were any.
""".
-spec for_recording(#{signatures => [row()] | term(), _ => _}) -> {ok, map()} | {error, error()}.
for_recording(Options) ->
    Rows = maps:get(signatures, Options, configured()),
    case table(Rows) of
        {ok, _} when Rows =:= [] -> {ok, maps:remove(signatures, Options)};
        {ok, _} -> {ok, Options#{signatures => Rows}};
        {error, _} = Error -> Error
    end.

-doc "What a process with this signature runs for the author, if the first row with patterns that match says so.".
-spec unwrap({module(), atom(), [term()]}, table()) -> {ok, {module(), atom(), [term()]}} | no.
unwrap({M, F, Args}, Table) when length(Args) =< ?MAX_ARITY ->
    Key = {M, F, length(Args)},
    case {?BUILT_IN, Table} of
        {#{Key := Rows}, #{Key := More}} -> first(Rows ++ More, F, Args);
        {#{Key := Rows}, #{}} -> first(Rows, F, Args);
        {#{}, #{Key := Rows}} -> first(Rows, F, Args);
        {#{}, #{}} -> no
    end;
unwrap(_, _) -> no.

first([{Patterns, Run} | Rows], F, Args) ->
    maybe
        {ok, Found} ?= match_all(Patterns, Args, #{}),
        {ok, _} ?= found(Run, Found, F, Args)
    else
        no -> first(Rows, F, Args)
    end;
first([], _, _) -> no.

found({Function, Arity}, #{module := M}, _, _) -> {ok, {M, Function, lists:duplicate(Arity, '_')}};
found(same, #{module := M, function := F, args := Args}, _, _) when is_atom(F), is_list(Args) -> {ok, {M, F, Args}};
found(same, #{function := _, module := _}, _, _) -> no;
found(same, #{function := Fun} = Found, _, _) when is_function(Fun) ->
    case Found of
        #{args := Args} when is_list(Args) -> {ok, {erlang, apply, [Fun, Args]}};
        #{args := _} -> no;
        #{} -> {ok, {erlang, apply, [Fun, []]}}
    end;
found(same, #{module := M, args := Arg}, F, _) -> {ok, {M, F, [Arg]}};
found(same, #{module := M}, F, Args) -> {ok, {M, F, Args}};
found(same, _, _, _) -> no.

match('_', _, Found) -> {ok, Found};
match(module, M, Found) when is_atom(M), M =/= nil, M =/= undefined, M =/= true, M =/= false -> {ok, Found#{module => M}};
match(module, _, _) -> no;
match(function, F, Found) when is_atom(F); is_function(F) -> {ok, Found#{function => F}};
match(function, _, _) -> no;
match(args, Args, Found) -> {ok, Found#{args => Args}};
match(Pattern, Term, Found) when is_tuple(Pattern), tuple_size(Pattern) =:= tuple_size(Term) ->
    match_all(tuple_to_list(Pattern), tuple_to_list(Term), Found);
match(Pattern, Term, Found) when is_map(Pattern), is_map(Term) ->
    match_keys(maps:to_list(Pattern), fun(Key) -> maps:find(Key, Term) end, Found);
match([_ | _] = Pattern, Term, Found) when is_list(Term) ->
    case is_keyword(Pattern) of
        true when length(Term) >= 0 -> match_keys(Pattern, fun(Key) -> find_key(Key, Term) end, Found);
        _ -> match_all(Pattern, Term, Found)
    end;
match(Pattern, Term, Found) when Pattern =:= Term -> {ok, Found};
match(_, _, _) -> no.

match_all([Pattern | Patterns], [Term | Terms], Found) ->
    case match(Pattern, Term, Found) of
        {ok, More} -> match_all(Patterns, Terms, More);
        no -> no
    end;
match_all([], [], Found) -> {ok, Found};
match_all(_, _, _) -> no.

match_keys([{Key, Pattern} | Pairs], Find, Found) ->
    maybe
        {ok, Term} ?= Find(Key),
        {ok, More} ?= match(Pattern, Term, Found),
        match_keys(Pairs, Find, More)
    else
        _ -> no
    end;
match_keys([], _, Found) -> {ok, Found}.

find_key(Key, List) ->
    case lists:keyfind(Key, 1, List) of
        {_, Term} -> {ok, Term};
        _ -> error
    end.

%% A list of options: other keys do not matter.
is_keyword([{Key, _}]) -> is_atom(Key);
is_keyword([{Key, _} | Pairs]) -> is_atom(Key) andalso is_keyword(Pairs);
is_keyword(_) -> false.

%% --- rows of a project -----------------------------------------------------------

-doc "The table of these rows.".
-spec table([row()] | term()) -> {ok, table()} | {error, error()}.
table(Rows) when is_list(Rows), length(Rows) =< ?MAX_ROWS -> table(Rows, #{});
table(Rows) when is_list(Rows), length(Rows) > 0 -> {error, {?MODULE, {too_many, length(Rows)}}};
table(_) -> {error, {?MODULE, no_rows}}.

-doc "The rows of two tables; those of the first one are tried first.".
-spec add(table(), table()) -> table().
add(Table, More) -> maps:merge_with(fun(_, Rows, Others) -> lists:uniq(Rows ++ Others) end, Table, More).

table([], Table) -> {ok, Table};
table([Row | Rows], Table) ->
    case check(Row) of
        ok ->
            {M, F, Patterns} = Row,
            New = [{Patterns, same}],
            table(Rows, maps:update_with({M, F, length(Patterns)}, fun(Before) -> Before ++ New end, New, Table));
        {error, Why} -> {error, {?MODULE, {bad_row, Row, Why}}}
    end.

check({M, F, Patterns} = Row) when is_atom(M), is_atom(F), length(Patterns) >= 1, length(Patterns) =< ?MAX_ARITY ->
    case erts_debug:flat_size(Row) of
        Words when Words =< ?MAX_ROW_WORDS -> check_placeholders(Patterns);
        Words -> {error, why({words, Words})}
    end;
check({M, F, Patterns}) when is_atom(M), is_atom(F), length(Patterns) >= 0 -> {error, why({arity, length(Patterns)})};
check(_) -> {error, why(no_row)}.

check_placeholders(Patterns) ->
    Names = lists:sort(placeholders_of_all(Patterns)),
    case Names -- [module, function, args] of
        _ when Names =:= []; Names =:= [args] -> {error, why(no_module)};
        [Name | _] -> {error, why({twice, Name})};
        [] ->
            case Names of
                [function, module] -> {error, why(no_args)};
                _ -> ok
            end
    end.

placeholders(Name) when Name =:= module; Name =:= function; Name =:= args -> [Name];
placeholders(Pattern) when is_tuple(Pattern) -> placeholders_of_all(tuple_to_list(Pattern));
placeholders(Pattern) when is_map(Pattern) -> placeholders_of_all(maps:values(Pattern));
placeholders([_ | _] = Pattern) ->
    case is_keyword(Pattern) of
        true -> placeholders_of_all([Of || {_, Of} <- Pattern]);
        false -> placeholders_of_all(Pattern)
    end;
placeholders(_) -> [].

placeholders_of_all([Pattern | Patterns]) -> placeholders(Pattern) ++ placeholders_of_all(Patterns);
placeholders_of_all(_) -> [].

-doc "All rows, with those that are built in, for native code.".
-spec rows(table()) -> [native()].
rows(Table) ->
    [case Run of
         same -> {M, F, A, Patterns, same, 0};
         {Function, Arity} -> {M, F, A, Patterns, Function, Arity}
     end || {M, F, A} := Rows <- maps:merge_with(fun(_, Own, More) -> Own ++ More end, ?BUILT_IN, Table), {Patterns, Run} <- Rows].

-doc "The functions that the rows are for, with those that are built in.".
-spec functions(table()) -> [mfa()].
functions(Table) -> maps:keys(maps:merge(?BUILT_IN, Table)).

-doc """
The functions of modules, given the function that knows what modules have. By the rows of a project a process of a module may have the
signature of a function that the module does not have.
""".
-spec exports(fun((module()) -> Unknown | [{atom(), arity()}]), [row()]) -> fun((module()) -> Unknown | [{atom(), arity()}])
              when Unknown :: atom().
exports(Exports, []) -> Exports;
exports(Exports, Rows) ->
    {ok, Table} = table(Rows),
    Started = lists:usort([{F, case lists:member(args, Names) of true -> 1; false -> A end}
                           || {_, F, A} := Of <- Table, {Patterns, _} <- Of, Names <- [placeholders_of_all(Patterns)],
                              not lists:member(function, Names)]),
    fun(M) ->
        case Exports(M) of
            [_ | _] = Functions -> Functions ++ Started;
            Other -> Other
        end
    end.

-doc "A row as on the command line, in Erlang's notation.".
-spec format(row()) -> unicode:chardata().
format({M, F, Patterns}) ->
    io_lib:format("~tw:~tw(~ts)", [M, F, lists:join(", ", [io_lib:format("~tw", [Pattern]) || Pattern <- Patterns])]).

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error(Reason) -> [~"option signatures: ", format_reason(Reason)].

-doc "The same for rows that come from elsewhere.".
-spec format_reason(reason()) -> unicode:chardata().
format_reason(no_rows) -> [~"a list of rows is expected, such as ", example()];
format_reason({too_many, Count}) -> io_lib:format("there are ~w rows; at most ~w are allowed", [Count, ?MAX_ROWS]);
format_reason({bad_row, Row, Why}) -> [witness_event:format_term(Row, 200, syntax(Row)), ~": ", Why].

why(no_row) -> [~"a row is {Module, Function, Arguments}, such as ", example()];
why(no_module) -> ~"no argument says where the module of the author is: one has to have the atom module, or function for a fun";
why({twice, Name}) -> [~"the atom ", atom_to_binary(Name), ~" is there twice"];
why(no_args) -> ~"a row with the atoms module and function has to have args too, for the list of arguments";
why({words, Words}) -> io_lib:format("it takes ~w words of memory; at most ~w are allowed", [Words, ?MAX_ROW_WORDS]);
why({arity, Arity}) -> io_lib:format("there are ~w arguments; 1 to ~w are allowed", [Arity, ?MAX_ARITY]).

example() -> ~"{MyServer, :init, [{:module, :args}]} in Elixir, {my_server, init, [{module, args}]} in Erlang".

syntax({M, _, _}) when is_atom(M) -> witness_event:syntax([M]);
syntax(_) -> erlang.
