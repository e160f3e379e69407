-module(witness_weave_error).
-moduledoc "The reasons why a module cannot be woven or loaded, and their texts.".

-export([format/1]).

-export_type([reason/0]).

-doc """
A reason about one module, about the modules of a request, none of which was loaded then, or about the owner.
""".
-type reason() ::
    {unknown | preloaded | sticky | cover_compiled | differs | no_object_code | no_debug_info | encrypted | nif | on_load
     | in_use | own | excepted, module()}
  | {crashed, {module(), term()}}
  | {woven, module(), Runtime :: module()}
  | {no_backend, module(), Backend :: module()}
  | {not_object_code, module(), term()}
  | {not_compiled, module(), [{file:filename(), [{erl_anno:location() | none, module(), term()}]}]}
  | {receive_in_record, module(), erl_anno:location()}
  | {owned, module(), Owner :: pid()}
  | {not_loaded, [{module(), term()}]}
  | {ended, Owner :: pid()}
  | not_started.

-doc "A reason as text.".
-spec format(reason()) -> unicode:chardata().
format({woven, Module, Runtime}) ->
    io_lib:format("~tp is woven already, by the compiler, for ~tp", [Module, Runtime]);
format({no_backend, Module, Backend}) ->
    io_lib:format("the debug information of ~tp is that of ~tp, which is not on the code path", [Module, Backend]);
format({not_object_code, Module, Reason}) ->
    io_lib:format("what was given as object code of ~tp is not: ~tp", [Module, Reason]);
format({not_compiled, Module, Errors}) ->
    Texts = [io_lib:format("~ts:~w: ~ts", [File, line(Location), Checker:format_error(Error)])
             || {File, Found} <- Errors, {Location, Checker, Error} <- Found],
    io_lib:format("~tp was woven and could not be compiled: ~ts", [Module, lists:join("; ", Texts)]);
format({receive_in_record, Module, Location}) ->
    io_lib:format("~tp, line ~w: a receive in the default value of a record's field cannot be woven",
                  [Module, line(Location)]);
format({crashed, {Module, Reason}}) ->
    io_lib:format("~tp was to be woven, and the compiler or Witness has failed: ~0tP", [Module, Reason, 10]);
format({owned, Module, Owner}) ->
    io_lib:format("~tp is woven already, for ~tp", [Module, Owner]);
format({ended, Owner}) ->
    io_lib:format("~tp, for whom modules were to be woven, has ended", [Owner]);
format({not_loaded, Reasons}) ->
    ["the code server does not load ", lists:join(", ", [io_lib:format("~tp (~tp)", [M, R]) || {M, R} <- Reasons])];
format(not_started) ->
    "Witness is not started: its supervisor keeps what has to be restored";
format({What, Module}) ->
    io_lib:format("~tp cannot be woven: ~ts", [Module, what(What)]).

what(unknown) -> "there is no such module on the code path";
what(preloaded) -> "it is part of the virtual machine";
what(sticky) -> "it is in a sticky directory, which protects OTP's own modules";
what(cover_compiled) -> "it is compiled for coverage, and its original code is not known";
what(differs) -> "the object code that is to be woven is not that of the code that is loaded";
what(no_object_code) -> "it was loaded from a binary that the code server does not have";
what(no_debug_info) -> "it has no debug information; compile it with the option debug_info";
what(encrypted) -> "its debug information is encrypted, and the key is not known";
what(nif) -> "it has native functions";
what(on_load) -> "it has a function that runs when it is loaded (on_load)";
what(own) -> "it is a module of Witness";
what(excepted) -> "it is left out by the plan";
what(in_use) -> "processes run the code of it that was loaded before the present one, and loading it again would kill them".

line({Line, _Column}) -> Line;
line(Line) -> Line.
