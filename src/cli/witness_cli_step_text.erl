-module(witness_cli_step_text).
-moduledoc "The output of `witness replay --step`: steps, processes, messages, causes. Pure, except for reading the session.".

-export([step/3, where/2, list/4, processes/3, mailbox/3, links/3, chain/3, sequence/4, frames/1, name/2, state/1, function/1,
         calls/6]).

-define(MAX_TERM_CHARS, 200).
-define(MAX_LABEL_CHARS, 60).
-define(MAX_STATE_CHARS, 4000).

-doc "A step, on one line.".
-spec step(witness_step:step(), witness_step:session(), witness_text:look()) -> unicode:chardata().
step(#{what := What} = Step, S, Look) -> [place(Step, S, Look), ~" ", said(What, S)].

place(#{number := N, id := Id, entry := Entry}, S, Look) ->
    [number(N, S), ~"  ", witness_text:pad([integer_to_binary(Id), $:, integer_to_binary(Entry)], 7), ~"  ",
     witness_text:style(strong, name(Id, S), Look)].

number(N, S) -> string:pad(integer_to_binary(N), length(integer_to_list(witness_step:size(S))), leading).

-doc "A process by its pid.".
-spec name(pos_integer(), witness_step:session()) -> binary().
name(Id, S) ->
    #{pid := Pid} = witness_step:process(Id, S),
    term(Pid).

said({born, Signature}, _) -> [~"begins: ", witness_event:format_signature(Signature)];
said({spawn, Child, Signature, Tied}, S) ->
    [~"spawns ", name(Child, S), ~": ", witness_event:format_signature(Signature),
     [~", linked" || lists:member(link, Tied)], [~", monitored" || lists:member(monitor, Tied)]];
said({send, To, Receiver, Msg, Sure}, S) ->
    [~"sends to ", term(To), [[~" (", name(Receiver, S), ~")"] || Receiver > 0, not is_pid(To)], ~": ", term(Msg),
     [~"  (perhaps: it was killed, and it is not known whether before)" || Sure =:= unsure]];
said({recv, outside, Msg}, _) -> [~"takes, from outside: ", term(Msg)];
said({recv, From, Msg}, S) -> [~"takes of ", name(From, S), ~": ", term(Msg)];
said({exit, ended, Reason}, _) -> [~"ends: ", term(Reason)];
said({exit, killed, Reason}, _) -> [~"is ended by a signal: ", term(Reason)];
said({call, MFA, Args, Value}, _) -> [~"calls ", call(MFA, Args), ~", which returns ", term(Value)];
said({raise, MFA, Args, Class, Reason}, _) -> [~"calls ", call(MFA, Args), ~", which raises ", term(Class), ~": ", term(Reason)];
said({effect, MFA, Args}, _) -> [~"calls ", call(MFA, Args)];
said(timeout, _) -> ~"waits no longer: the time of its receive is over";
said(lost, _) -> ~"sends more, perhaps, which is not kept: it was killed, and it is not known whether before".

call({Module, Function, _}, Args) -> witness_event:format_signature({Module, Function, Args}).

term(Term) -> witness_event:format_term(Term, ?MAX_TERM_CHARS).

-doc "The current step.".
-spec where(witness_step:session(), witness_text:look()) -> [unicode:chardata()].
where(S, Look) ->
    case witness_step:step(S) of
        none -> [[~"before the first of ", count(S)]];
        #{stack := Stack} = Step -> [step(Step, S, Look) | frames(Stack)]
    end.

count(S) -> witness_text:count(witness_step:size(S), ~"event", ~"events").

-doc "A stack, a line for each frame.".
-spec frames([tuple()]) -> [unicode:chardata()].
frames(Stack) -> [[~"    in ", frame(Frame)] || Frame <- Stack].

frame({Module, Function, Args, Location}) when is_list(Args) -> frame({Module, Function, length(Args), Location});
frame({Module, Function, Arity, Location}) ->
    [witness_event:format_function({Module, Function, Arity}),
     case {lists:keyfind(file, 1, Location), lists:keyfind(line, 1, Location)} of
         {{_, File}, {_, Line}} -> [~" (", witness_text:clean(File), $:, integer_to_binary(Line), $)];
         _ -> ~""
     end].

-doc "The steps around; the current one has a mark.".
-spec list(non_neg_integer(), pos_integer(), witness_step:session(), witness_text:look()) -> [unicode:chardata()].
list(At, Around, S, Look) ->
    [[case N of At -> ~"=> "; _ -> ~"   " end, step(witness_step:step(N, S), S, Look)]
     || N <- lists:seq(max(1, At - Around), min(witness_step:size(S), At + Around))].

-doc "Processes, with their signatures, their queue lengths, and their names.".
-spec processes(living | all, witness_step:session(), witness_text:look()) -> [unicode:chardata()].
processes(Which, S, _) ->
    At = witness_step:at(S),
    Names = witness_step:names(S),
    Shown = [Process || #{ended := Ended} = Process <- witness_step:processes(S),
             Which =:= all orelse Ended =:= 0 orelse Ended > At],
    witness_text:columns([[~"number", ~"process", ~"function", ~"waiting", ~"", ~"names"]
                          | [[integer_to_binary(Id), term(Pid), witness_event:format_function(MFA),
                              integer_to_binary(length(witness_step:mailbox(Id, S))),
                              case Ended =:= 0 orelse Ended > At of
                                  true -> ~"lives";
                                  false -> [~"ended, ", integer_to_binary(Ended)]
                              end,
                              lists:join(~", ", [term(Name) || Name := Owner <- Names, Owner =:= Id])]
                             || #{id := Id, pid := Pid, called := MFA, ended := Ended} <- Shown]]).

-doc "The messages that were sent to a process, and that it has not received.".
-spec mailbox(pos_integer(), witness_step:session(), witness_text:look()) -> [unicode:chardata()].
mailbox(Id, S, Look) ->
    case witness_step:mailbox(Id, S) of
        [] -> [[name(Id, S), ~" has nothing in its mailbox"]];
        Steps -> [step(Step, S, Look) || Step <- Steps]
    end.

-doc "Links, monitors and names of a process.".
-spec links(pos_integer(), witness_step:session(), witness_text:look()) -> [unicode:chardata()].
links(Id, S, _) ->
    #{links := Links, monitors := Monitors, names := Names} = witness_step:links(Id, S),
    witness_text:columns([[~"linked with", joined([term(Pid) || Pid <- Links])],
                          [~"monitors", joined([[term(Item), ~", by ", term(Ref)] || {Ref, Item} <- Monitors])],
                          [~"names", joined([term(Name) || Name <- Names])]]).

joined([]) -> ~"none";
joined(Items) -> lists:join(~"; ", Items).

-doc "A chain of causes, the requested step first, each with its notes.".
-spec chain([witness_step_why:entry()], witness_step:session(), witness_text:look()) -> [unicode:chardata()].
chain([], S, _) -> [[~"before the first of ", count(S)]];
chain([First | Causes] = Chain, S, Look) ->
    #{cause := Last} = lists:last(Chain),
    entry(~"   ", First, S, Look) ++ lists:append([entry(~"<- ", Step, S, Look) || Step <- Causes])
        ++ [[~"<- and more: why ", integer_to_binary(maps:get(number, First)), ~" all"] || Last > 0].

entry(Mark, #{notes := Notes} = Step, S, Look) ->
    [[Mark, step(maps:remove(notes, Step), S, Look)] | [[~"       ", Line] || Note <- Notes, Line <- note(Note, S)]].

note({cancelled_too_late, N}, _) ->
    [[~"a stale timer: the process cancelled it before, at ", integer_to_binary(N), ~", when it had fired already"]];
note({one_timer_of, Starts}, _) ->
    [[~"one of these timers sent it, and it is not known which: ", lists:join(~", ", [integer_to_binary(N) || N <- Starts])]];
note({no_answer, #{request := Request, server := 0}}, _) ->
    [[~"the answer to ", integer_to_binary(Request), ~" is not in the recording: its server is outside, or does not exist"]];
note({no_answer, #{request := Request, server := Server, taken := Taken, answered := Answered}}, S) ->
    [[~"waits for ", name(Server, S), ~", which ",
      case {Taken, Answered} of
          {0, _} -> [~"never takes ", integer_to_binary(Request)];
          {_, 0} -> [~"takes ", integer_to_binary(Request), ~" at ", integer_to_binary(Taken), ~" and never answers it"];
          _ -> [~"takes ", integer_to_binary(Request), ~" at ", integer_to_binary(Taken), ~"; the answer is ", integer_to_binary(Answered)]
      end]];
note({deadlock, Ids}, S) ->
    [[~"a deadlock: ", lists:join(~", ", [name(Id, S) || Id <- Ids]), ~" wait for each other"]];
note({last, #{process := Id, until := none, stack := Stack}}, S) ->
    [[name(Id, S), ~" does nothing after that", case Stack of
        [] -> [~"; state ", integer_to_binary(Id), ~" shows where it is"];
        _ -> ~", and is here"
    end] | frames(Stack)];
note({last, #{process := Id, until := Until, step := N, stack := Stack}}, S) ->
    [[~"the last that ", name(Id, S), ~" does before it ", until(Until), ~", at ", integer_to_binary(N)] | frames(Stack)];
note({overwrites, #{change := Change, read := Read}}, S) ->
    #{id := Id, what := What} = witness_step:step(Change, S),
    [[~"overwrites what it does not know: it has read at ", integer_to_binary(Read), ~", and since then, at ",
      integer_to_binary(Change), ~", ", name(Id, S), ~" ", said(What, S)]];
note({at_the_same_time, N}, _) ->
    [[~"perhaps: this call and ", integer_to_binary(N), ~" were under way at the same time"]];
note({race, #{from := From, sent := Sent, message := Message, taken := Taken}}, S) ->
    [[~"a race: ", term(Message), ~" of ", name(From, S), ~", sent at ", integer_to_binary(Sent), case Taken of
        0 -> ~", is never taken";
        _ -> [~", is taken later, at ", integer_to_binary(Taken)]
    end]].

until(answer) -> ~"answers";
until(taken) -> ~"takes the request";
until(next) -> ~"takes its next message".

-doc "Messages that were received: as a chart, or in the language of Mermaid.".
-spec sequence(text | mermaid, [witness_step:message()], witness_step:session(), witness_text:look()) -> [unicode:chardata()].
sequence(_, [], _, _) -> [~"no message was taken so far"];
sequence(text, Messages, S, Look) ->
    Pid = fun(0) -> undefined; (Id) -> maps:get(pid, witness_step:process(Id, S)) end,
    Parties = lists:usort([Id || #{from := From, to := To} <- Messages, Id <- [From, To], Id > 0]),
    Modules = #{Pid(Id) => element(1, maps:get(called, witness_step:process(Id, S))) || Id <- Parties},
    witness_text_chart:chart([#{index => N, event => {recv, Pid(To), Pid(From), Message, undefined}, formula => undefined,
                                bindings => []}
                              || #{number := N, from := From, to := To, message := Message} <- Messages],
                             #{titles => Modules, aliases => #{}, syntax => erlang}, undefined, Look);
sequence(mermaid, Messages, S, _) ->
    Parties = lists:uniq(lists:append([[From, To] || #{from := From, to := To} <- Messages])),
    [string:trim(Line, trailing, "\n")
     || Line <- [witness_cli_mermaid:heading()] ++ [witness_cli_mermaid:participant(Id, party(Id, S)) || Id <- Parties]
                ++ [witness_cli_mermaid:arrow(From, To, witness_event:format_term(Message, ?MAX_LABEL_CHARS))
                    || #{from := From, to := To, message := Message} <- Messages]].

party(0, _) -> ~"";
party(Id, S) ->
    #{called := MFA} = witness_step:process(Id, S),
    witness_text:cut([name(Id, S), ~" ", witness_event:format_function(MFA)], ?MAX_LABEL_CHARS).

-doc "A function in the form of the request.".
-spec function({binary(), binary(), arity() | any}) -> unicode:chardata().
function({Module, Function, Arity}) ->
    [witness_text:clean(Module), $:, witness_text:clean(Function), [[$/, integer_to_binary(Arity)] || is_integer(Arity)]].

-doc "The first of these calls, up to this number, each with the step after which it was made.".
-spec calls({binary(), binary(), arity() | any}, [witness_step:call(), ...], pos_integer() | infinity, Complete :: boolean(),
            witness_step:session(),
            witness_text:look()) -> [unicode:chardata()].
calls(Function, Calls, N, Complete, S, Look) ->
    Shown = case N of infinity -> Calls; _ -> lists:sublist(Calls, N) end,
    More = length(Calls) - length(Shown),
    [[place(Call, S, Look), ~" ", called(Call)] || Call <- Shown]
        ++ [[~"and ", witness_text:count(More, ~"call", ~"calls"), ~" more: calls ", function(Function), ~" all"] || More > 0]
        ++ [[~"there are more: ", function(Function), ~" is called so often that only those are known which the replay made first"]
            || not Complete].

called(#{function := MFA, args := Args, result := Result}) ->
    [Name | _] = string:split(witness_event:format_function(MFA), "/", trailing),
    [Name, $(, lists:join(~", ", [shortened(Arg) || Arg <- Args]), $),
     case Result of
         {returned, Value} -> [~" -> ", shortened(Value)];
         {raised, Class, Reason} -> [~" raises ", atom_to_binary(Class), ~": ", shortened(Reason)];
         none -> ~" does not return"
     end].

shortened(Text) -> witness_text:cut(Text, ?MAX_TERM_CHARS).

-doc "The answer of a process.".
-spec state(witness_step_live:answer()) -> [unicode:chardata()].
state({ok, State}) -> [witness_event:format_term(State, ?MAX_STATE_CHARS)];
state({in_receive, Stack, Backtrace}) -> [~"it waits for a message, with these values" | values(Stack, Backtrace)];
state({elsewhere, Stack, Backtrace}) ->
    [~"it is in the midst of something, so that it cannot be asked for its state; its values are" | values(Stack, Backtrace)];
state({running, Stack, Backtrace}) ->
    [~"it runs, and has not come to a point where it can be asked; its values are" | values(Stack, Backtrace)].

%% The VM's text for each frame: its function, and its values on the stack. The first frames are those of Witness.
values(Stack, Backtrace) ->
    frames(Stack) ++ [[~"      ", witness_text:cut(witness_text:clean(Line), ?MAX_TERM_CHARS)]
                      || Line <- shown(binary:split(Backtrace, ~"\n", [global]), own)].

shown([], _) -> [];
shown([<<"0x", _/binary>> = Line | Lines], _) ->
    case binary:match(Line, [~"witness_replay_", ~"unknown function", ~"<terminate process"]) of
        nomatch ->
            Frame = re:replace(Line, "^0x[0-9a-f]+ Return addr 0x[0-9a-f]+ ", "", [{return, binary}]),
            [Frame | shown(Lines, program)];
        _ -> shown(Lines, own)
    end;
shown([<<"y(", _/binary>> = Line | Lines], program) -> [[~"  ", Line] | shown(Lines, program)];
shown([_ | Lines], In) -> shown(Lines, In).
