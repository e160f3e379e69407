%% A task of Mix, written in Erlang. It defines ?ATTRIBUTES, or only ?SHORT_TEXT, which `mix help' lists. Its documentation is what
%% `mix help witness.COMMAND' shows. The module `Mix.Tasks.Witness.COMMAND' also defines ?COMMAND, which it runs.
-export(['__info__'/1, run/1]).

-ifndef(ATTRIBUTES).
-define(ATTRIBUTES, [{shortdoc, [?SHORT_TEXT]}]).
-endif.

-doc false.
'__info__'(module) -> ?MODULE;
'__info__'(functions) -> [{run, 1}];
'__info__'(macros) -> [];
'__info__'(struct) -> nil;
'__info__'(deprecated) -> [];
'__info__'(attributes) -> ?ATTRIBUTES;
'__info__'(Key) when Key =:= compile; Key =:= md5 -> erlang:get_module_info(?MODULE, Key).

-ifdef(COMMAND).
-doc "What Mix calls.".
-spec run([binary()]) -> ok.
run(Arguments) -> witness_task_mix:run(?COMMAND, Arguments).
-endif.
