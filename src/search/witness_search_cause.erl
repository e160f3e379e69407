-module(witness_search_cause).
-moduledoc """
In which way a run has failed: two runs with the same cause count as one failure, although their processes, messages and schedules
differ. Pure, but for the modules that a stack names.

| Outcome | The same cause |
|---|---|
| violation | the same property |
| crash | the same kind of reason, from the same line of the program, and below it the same function of a library; of an exit, which has no line, the same kind of reason in a process that began with the same function |
| deadlock, processes left, messages not taken | processes wait at the same lines; servers that wait for a request do not count, and how many wait at a line does not either |
| another value | a value of the same form: the same atoms in the same places of its tuples |
| end of the VM | the same status |
| too many steps | always |

The *kind* of a reason is its first atom, `badmatch` of `{badmatch, 2}`.
""".

-export([of_run/1, describe/1, waiting/2]).

-export_type([cause/0]).

-type cause() :: term().

%% How deep the form of a value goes.
-define(DEPTH, 3).
-define(LIBRARIES, [kernel, stdlib, elixir]).

-doc "The cause of a run that has failed.".
-spec of_run(witness_search_scheduler:result()) -> cause().
of_run(#{outcome := {crashed, 1, {application_not_started, App, Reason}}}) -> {application_not_started, App, kind(Reason)};
of_run(#{outcome := {crashed, Id, Reason}} = Result) -> {crashed, reason(Reason, Id, Result)};
of_run(#{outcome := {unexpected, _, {returned, Value}}}) -> {returned, form(Value, ?DEPTH)};
of_run(#{outcome := {unexpected, Id, {ended, Reason}}} = Result) -> {unexpected, reason(Reason, Id, Result)};
of_run(#{outcome := {violated, _, _} = Violated}) -> Violated;
of_run(#{outcome := {How, Ids}} = Result) when is_list(Ids) ->
    {How, lists:usort([place(Process) || Process <- waiting(Ids, Result)])};
of_run(#{outcome := {halted, _, {application_controller, _}}}) -> {halted, application_controller};
of_run(#{outcome := {halted, _, Status}}) -> {halted, form(Status, 1)};
of_run(#{outcome := Outcome}) when is_tuple(Outcome) -> element(1, Outcome);
of_run(#{outcome := Outcome}) -> Outcome.

%% An error that a call of a server passes on, a stack, or the choice of an author.
reason({Why, [{Module, Function, _, Info} | _] = Stack}, _, _) when is_atom(Module), is_atom(Function), is_list(Info) ->
    {kind(Why), Module, Function, line(lists:search(fun is_of_program/1, Stack), hd(Stack))};
reason({Why, {Module, Function, Args}}, Id, Result) when is_atom(Module), is_atom(Function), is_list(Args) ->
    {Module, Function, reason(Why, Id, Result)};
reason(Reason, Id, #{births := Births}) ->
    #{Id := #{signature := {Module, Function, Args}}} = Births,
    {kind(Reason), Module, Function, case is_list(Args) of true -> length(Args); false -> Args end}.

line({value, Frame}, _) -> line(Frame);
line(false, Top) -> line(Top).

line({Module, Function, _, Info}) -> {Module, Function, proplists:get_value(line, Info)}.

is_of_program({Module, _, _, Info}) when is_atom(Module), is_list(Info) ->
    case application:get_application(Module) of
        {ok, App} -> not lists:member(App, ?LIBRARIES);
        undefined -> not lists:member(Module, erlang:pre_loaded())
    end;
is_of_program(_) -> false.

kind(#{'__struct__' := Name}) when is_atom(Name) -> Name;
kind(Reason) when is_tuple(Reason), tuple_size(Reason) > 0 -> kind(element(1, Reason));
kind(Reason) when is_atom(Reason) -> Reason;
kind(_) -> other.

form(Atom, _) when is_atom(Atom) -> Atom;
form(Tuple, Depth) when is_tuple(Tuple), Depth > 0 -> list_to_tuple([form(Element, Depth - 1) || Element <- tuple_to_list(Tuple)]);
form(#{'__struct__' := Name}, _) when is_atom(Name) -> {struct, Name};
form(Number, _) when is_number(Number) -> {other, number};
form(Text, _) when is_binary(Text) -> {other, binary};
form(List, _) when is_list(List) -> {other, list};
form(_, _) -> {other, other}.

-doc "Those of these processes that wait for something, and not as a server for a request, in their order.".
-spec waiting([witness_search_world:id()], witness_search_scheduler:result()) -> [#{id := witness_search_world:id(), _ => _}].
waiting(Ids, #{births := Births, alive := Alive}) ->
    [Described#{id => Id} || Id <- Ids, #{Id := At} <- [Alive], #{Id := Birth} <- [Births],
                             Described <- [describe(maps:merge(Birth, At))], map_get(state, Described) =/= request].

-doc "Where a process was that was alive at the end.".
-spec describe(#{pid := pid(), signature := witness_event:signature() | mfa(), stack := [term()], waits := boolean(),
                 messages := [term()], _ => _}) ->
    witness_run_remaining:process().
describe(#{pid := Pid, signature := {Module, Function, Args}, stack := Stack, waits := Waits, messages := Messages}) ->
    Arity = case Args of _ when is_integer(Args) -> Args; _ -> length(Args) end,
    witness_run_remaining:describe(Pid, {Module, Function, Arity}, Stack, Waits, Messages).

%% In a function that it shares with others, such as that of a call, a process is known by its first one.
place(#{place := {_, _, _, _} = Frame, signature := Signature}) ->
    case is_of_program(Frame) of
        true -> line(Frame);
        false -> {Signature, line(Frame)}
    end;
place(#{signature := Signature}) -> Signature.
