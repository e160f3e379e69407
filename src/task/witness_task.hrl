%% A task of Mix, in the module `Mix.Tasks.Witness.COMMAND'. It is written in Erlang, as `Mix.Tasks.Compile.Witness' is. It
%% defines ?COMMAND and ?SHORT_TEXT, which `mix help' lists. Its documentation is what `mix help witness.COMMAND' shows.
-export(['__info__'/1, run/1]).

-doc false.
'__info__'(module) -> ?MODULE;
'__info__'(functions) -> [{run, 1}];
'__info__'(macros) -> [];
'__info__'(struct) -> nil;
'__info__'(deprecated) -> [];
'__info__'(attributes) -> [{shortdoc, [?SHORT_TEXT]}];
'__info__'(Key) when Key =:= compile; Key =:= md5 -> erlang:get_module_info(?MODULE, Key).

-doc "What Mix calls.".
-spec run([binary()]) -> ok.
run(Arguments) -> witness_task_mix:run(?COMMAND, Arguments).
