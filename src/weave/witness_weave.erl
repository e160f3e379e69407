-module(witness_weave).
-moduledoc """
Rewrites modules so that they report what they do to a run-time module, and loads them in the place of the original ones.

A module comes as abstract code: from a parse transform, or from the debug information of its object code (Erlang's, or
Elixir's through its back end). Weaving is pure: abstract code in, abstract code out. Weaving replaces:

| In the code | Woven |
|---|---|
| `To ! Msg`, `erlang:send(To, Msg)` | done as before, then `Runtime:sent(To, Msg)`. If the plan says so: as before if `To` is a process of this node, otherwise `Runtime:send/3` |
| `receive Pattern -> Body ... end` | `Runtime:received(Msg)` before the body of the clause that has taken `Msg` |
| `after Time -> Body`, if the plan says so | `Runtime:timeout()` before the body |
| `receive ... after Time`, if the plan says so | `Runtime:waits(Time)` as its time, or before the `receive` if it has none; or `Runtime:blocks(Time)` and `Runtime:wakes(Blocked)`, if it finds no message |
| all of a `receive`, if the plan says so | `Runtime:take/4` gives the message |
| a call of a function that the plan's table lists (`witness_weave_calls`) | `Runtime:Class(Module, Function, Args)` does it |
| a call with a module or function that is known only at run time, if it can be one of these | `Runtime:apply(Module, Function, Args)` does it |
| `fun erlang:send/2` and the like | `Runtime:function(Module, Function, Arity)` |
| the entry functions of the plan | `Runtime:entry(Module, Function, Args)` before the body, in processes that are not observed yet |
| callbacks of OTP's behaviours (`witness_weave_behaviour`) | `Runtime:callback(Module, Function, Args)` before the body |
| a function that the plan names | `Runtime:called(Module, Function, Args)` before the body, also if no clause matches; and, if the plan says so, `Runtime:returned(Module, Function, Arity, Value)` after it |

The behaviour `witness_weave_runtime` defines the functions of `Runtime`, and their contracts.

Weaving preserves: values and the order of evaluation, tail calls, names of functions and funs, the order, hash and text of
funs (`m:witness_weave_funs`), the compiler's warnings, and lines and functions in stack traces. A stack trace may have added frames
of the run-time module, if it does a call. Functions that report their returns make no tail calls, so their frames are added too.

```erlang
1> {ok, Woven} = witness_weave:prepare(my_server, #{runtime => my_runtime, entries => [{loop, 1}]}).
2> ok = witness_weave:load([Woven], self()).   % until restore/1, or the end of this process
3> witness_weave:restore(self()).
ok
```
""".

-export([weave/2, forms/1, prepare/2, woven/1, load/2, restore/1, format_error/1]).

-export_type([plan/0, object/0, prepared/0]).

-doc """
How to weave a module.

- `runtime`: the module with the functions that the woven code calls.
- `entries`: the functions that a process may start with (default none).
- `key`: a process that has this in its dictionary is past its entry (default `'$witness_inline'`).
- `woven`: the modules that are woven together with this one: they report by themselves what they do when they are called.
- `calls`: the table of calls, a module with the behaviour `witness_weave_calls` (default: `witness_weave_calls`
  itself).
- `natives`: functions of modules that cannot be woven, with the numbers of their class `foreign`.
- `sends`: how `!` and `erlang:send/2` are woven. `told` (default): the code sends, and reports it then. `replaced`: the code
  sends to processes of this node without a report, and any other send is `Runtime:send/3`. `announced`: the same, but
  `Runtime:sent/2` comes before the code sends by itself. `routed`: every send is `Runtime:send/3`.
- `receives`: `told` (default): a `receive` takes messages by itself and reports them. `replaced`: the `receive` asks the run time
  for a message (`m:witness_weave_core`). The run time then also gives the value of `self()` and the content of stack traces.
- `timeouts`: whether `Runtime:timeout/0` comes before the body of an `after` (default `false`).
- `announces`: whether `Runtime:sends/0` comes before a send that is `told` (default `false`).
- `waits`: whether `Runtime:waits/1` is called before a `receive` starts, and returns how long it may wait (default `false`); or
  `blocked`: only a `receive` that finds no message reports that (`m:witness_weave_blocks`).
- `references`: calls of class `result` that make a reference stay in the code, and `Runtime:returned/2` gets their result
  (default `false`). Then a `receive` of a message with this reference still skips the messages that are older.
- `quick`: whether to skip the compiler pass that takes most of its time and gains little (`no_ssa_opt`; default `false`).
  Measured on code of `stdlib` while it is recorded: weaving takes a third of the time, and the run time does not differ.
- `unchanged`: whether a module that weaving does not change is `compiled` all the same (default), or `kept` as it is.
- `except`: modules that `m:witness_weave_cache` leaves as they are.
- `tables`: modules that the table of calls uses, for the key of `m:witness_weave_cache`.
- `callbacks`: whether callbacks of OTP's behaviours ask the run time (default `true`).
- `functions`: the functions that report their calls, and their returns (default none). Those of other modules do not count, nor
  those that the module does not define. A call that ends by an exception does not return.
""".
-type plan() :: #{runtime := module(), entries => all | [{atom(), arity()}], key => term(), woven => [module()],
                  calls => module(), natives => #{mfa() => non_neg_integer()},
                  sends => told | replaced | announced | routed, receives => told | replaced, tables => [module()],
                  timeouts => boolean(), waits => boolean() | blocked, references => boolean(), announces => boolean(),
                  callbacks => boolean(), except => [module()], functions => #{mfa() => witness_weave_entry:reports()},
                  unchanged => compiled | kept, quick => boolean()}.

-doc "Object code, and the file name for the code server.".
-type object() :: {module(), file:filename(), binary()}.

-doc "A woven module, with the original that it replaces.".
-type prepared() :: #{module := module(), file := file:filename(), original := binary(), woven := binary()}.

-doc """
Rewrites a module. Pure.

The attribute `witness_weave` of the result names the run-time module. Weaving refuses only one kind of code: a `receive` in the
default value of a record's field. Then it raises the exception `error:{receive_in_record, Module, Location}`.
""".
-spec weave([erl_parse:abstract_form()], plan()) -> [erl_parse:abstract_form()].
weave(Forms, Plan) ->
    {Whole, Questions} = case maps:get(callbacks, Plan, true) of
        true -> witness_weave_behaviour:prepare(Forms, Plan);
        false -> {Forms, #{}}
    end,
    Context = witness_weave_expr:context(Whole, Plan),
    lists:flatmap(fun(Form) -> form(Form, Plan#{questions => Questions}, Context) end, Whole).

form({attribute, Anno, module, _} = Form, #{runtime := Runtime} = Plan, _) ->
    G = erl_anno:set_generated(true, Anno),
    Blocks = [{attribute, G, compile, {core_transform, witness_weave_blocks}} || maps:get(waits, Plan, false) =:= blocked],
    [Form, {attribute, G, ?MODULE, Runtime} | Blocks];
form({attribute, Anno, record, {Name, Fields}}, _, Context) ->
    [{attribute, Anno, record, {Name, witness_weave_expr:record_fields(Fields, Context)}}];
form({function, Anno, Name, Arity, Clauses}, Plan, #{module := Module} = Context) ->
    Reports = maps:get({Module, Name, Arity}, maps:get(functions, Plan, #{}), []),
    Woven = witness_weave_expr:clauses(Clauses, Context),
    [{function, Anno, Name, Arity,
      witness_weave_entry:clauses(Anno, Name, Woven, question({Name, Arity}, Plan), Reports, Context)}];
form(Form, _, _) ->
    [Form].

question(Function, #{questions := Questions}) when is_map_key(Function, Questions) -> maps:get(Function, Questions);
question(_, #{entries := all}) -> entry;
question(Function, #{entries := Entries}) -> case lists:member(Function, Entries) of true -> entry; false -> none end;
question(_, #{}) -> none.

-doc """
The abstract code of a module, and those of its compiler options that change what the code does.

For a module name, the object code comes from the code server, and has to be that of the loaded module.
""".
-spec forms(module() | object()) ->
    {ok, [erl_parse:abstract_form()], [compile:option()]} | {error, witness_weave_error:reason()}.
forms(Module) when is_atom(Module) ->
    maybe
        {ok, Object} ?= witness_weave_forms:object(Module),
        forms(Object)
    end;
forms(Object) ->
    witness_weave_forms:forms(Object).

-doc """
Weaves a module and compiles it, ready to be loaded.

With `unchanged => kept` in the plan, a module that weaving does not change is not compiled (`m:witness_weave_unchanged`).
""".
-spec prepare(module() | object(), plan()) -> {ok, prepared()} | {error, witness_weave_error:reason()}.
prepare(Module, Plan) when is_atom(Module) ->
    maybe
        {ok, Object} ?= witness_weave_forms:object(Module),
        prepare(Object, Plan)
    end;
prepare({Module, File, Original} = Object, Plan) ->
    maybe
        {ok, Forms, Given} ?= witness_weave_forms:forms(Object),
        Options = [no_ssa_opt || maps:get(quick, Plan, false)] ++ Given,
        {ok, Rewritten} ?= rewrite(Forms, Plan),
        {ok, Woven} ?= object(Object, Forms, Rewritten, Options, Plan),
        Named = witness_weave_names:keep(Original, Woven),
        Kept = witness_weave_description:keep(Original, witness_weave_funs:keep(Original, Named)),
        {ok, #{module => Module, file => File, original => Original, woven => Kept}}
    else
        %% The compiler has undocumented requirements for Core Erlang. If a `receive' does not say that it blocks, that is at
        %% most a gap.
        {error, _, _} when map_get(waits, Plan) =:= blocked -> prepare(Object, Plan#{waits := false});
        {error, Errors, _Warnings} -> {error, {not_compiled, Module, Errors}};
        {error, _} = Error -> Error
    end.

object({Module, _, Original}, Forms, Rewritten, Options, #{runtime := Runtime} = Plan) ->
    Unchanged = maps:get(unchanged, Plan, compiled) =:= kept andalso witness_weave_unchanged:forms(Forms, Rewritten),
    maybe
        {changed, Code, Passes} ?= code(Module, Rewritten, Options, Unchanged, Plan),
        {ok, Module, Woven} ?= compile:noenv_forms(Code, Passes ++ [binary, return_errors | Options]),
        {ok, Woven}
    else
        unchanged -> {ok, witness_weave_unchanged:mark(Original, Runtime)};
        {error, _, _} = Error -> Error
    end.

%% The code that remains to be compiled, and the passes for it.
code(Module, Forms, Options, Unchanged, #{receives := replaced} = Plan) ->
    maybe
        {ok, Module, Core} ?= compile:noenv_forms(Forms, [to_core0, binary, return_errors | Options]),
        case witness_weave_core:module(Core, Plan) of
            Core when Unchanged -> unchanged;
            %% The compiler does not see options in attributes if it starts from Core Erlang.
            Replaced -> {changed, Replaced, [from_core | lists:append([Given || {attribute, _, compile, Given} <- Forms])]}
        end
    end;
code(_, _, _, true, #{}) -> unchanged;
code(_, Forms, _, false, #{}) -> {changed, Forms, []}.

rewrite(Forms, Plan) ->
    try
        {ok, weave(Forms, Plan)}
    catch
        error:{receive_in_record, _, _} = Reason -> {error, Reason}
    end.

-doc "The run-time module that a loaded module was woven for, by a parse transform or by `prepare/2`.".
-spec woven(module()) -> {ok, Runtime :: module()} | no.
woven(Module) -> witness_weave_forms:woven(Module).

-doc """
Loads woven modules in the place of the original ones: all of them, or none. They stay until their owner, a process of
this node, restores them or ends.
""".
-spec load([prepared()], Owner :: pid()) -> ok | {error, witness_weave_error:reason()}.
load(Prepared, Owner) -> witness_weave_loader:load(Prepared, Owner).

-doc """
Restores the modules that an owner has loaded.

A process may have run the original code since before it was woven. It is never killed for that: while there is one, the woven
code stays, `{in_use, Modules}`, and is replaced as soon as there is none.
""".
-spec restore(Owner :: pid()) -> ok | {in_use, [module()]} | {error, not_started}.
restore(Owner) -> witness_weave_loader:restore(Owner).

-doc "A reason as text.".
-spec format_error(witness_weave_error:reason()) -> unicode:chardata().
format_error(Reason) -> witness_weave_error:format(Reason).
