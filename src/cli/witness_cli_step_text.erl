-module(witness_cli_step_text).
-moduledoc """
The output of `witness replay --step`: steps, processes, messages, causes. Pure, except for reading the session.

What is said of a process that was spawned with a function of Elixir is written as in Elixir.
""".

-export([step/3, where/2, list/4, processes/3, mailbox/3, links/3, chain/3, sequence/4, name/2, state/3, function/1,
         calls/6]).

-define(MAX_TERM_CHARS, 200).
-define(MAX_LABEL_CHARS, 60).
-define(MAX_STATE_CHARS, 4000).

-doc "A step, on one line.".
-spec step(witness_step:step(), witness_step:session(), witness_text:look()) -> unicode:chardata().
step(#{what := What, id := Id} = Step, S, Look) -> [place(Step, S, Look), ~" ", said(What, syntax(Id, S), S)].

place(#{number := N, id := Id, entry := Entry}, S, Look) ->
    [number(N, S), ~"  ", witness_text:pad([integer_to_binary(Id), $:, integer_to_binary(Entry)], 7), ~"  ",
     witness_text:style(strong, name(Id, S), Look)].

number(N, S) -> string:pad(integer_to_binary(N), length(integer_to_list(witness_step:size(S))), leading).

-doc "A process by its pid.".
-spec name(pos_integer(), witness_step:session()) -> binary().
name(Id, S) -> name(Id, syntax(Id, S), S).

name(Id, Syntax, S) ->
    #{pid := Pid} = witness_step:process(Id, S),
    term(Pid, Syntax).

%% The language of a process.
syntax(Id, S) ->
    #{called := MFA} = witness_step:process(Id, S),
    witness_event:syntax_of_function(MFA).

%% That of a call in a process of this language.
syntax_of_call(_, elixir) -> elixir;
syntax_of_call(MFA, erlang) -> witness_event:syntax_of_function(MFA).

said({born, Signature}, Syntax, _) -> [~"begins: ", witness_event:format_signature(Signature, Syntax)];
said({spawn, Child, Signature, Tied}, Syntax, S) ->
    [~"spawns ", name(Child, Syntax, S), ~": ", witness_event:format_signature(Signature, syntax_of_call(Signature, Syntax)),
     [~", linked" || lists:member(link, Tied)], [~", monitored" || lists:member(monitor, Tied)]];
said({send, To, Receiver, Msg, Sure}, Syntax, S) ->
    [~"sends to ", term(To, Syntax), [[~" (", name(Receiver, Syntax, S), ~")"] || Receiver > 0, not is_pid(To)], ~": ",
     term(Msg, Syntax), [~"  (perhaps: it was killed, and it is not known whether before)" || Sure =:= unsure]];
said({recv, outside, Msg}, Syntax, _) -> [~"takes, from outside: ", term(Msg, Syntax)];
said({recv, From, Msg}, Syntax, S) -> [~"takes of ", name(From, Syntax, S), ~": ", term(Msg, Syntax)];
said({exit, ended, Reason}, Syntax, _) -> [~"ends: ", witness_event:format_reason(Reason, ?MAX_TERM_CHARS, Syntax)];
said({exit, killed, Reason}, Syntax, _) ->
    [~"is ended by a signal: ", witness_event:format_reason(Reason, ?MAX_TERM_CHARS, Syntax)];
said({call, MFA, Args, Value}, Syntax, _) ->
    [~"calls ", call(MFA, Args, Syntax), ~", which returns ", term(Value, syntax_of_call(MFA, Syntax))];
said({raise, MFA, Args, Class, Reason}, Syntax, _) ->
    [~"calls ", call(MFA, Args, Syntax), ~", which raises ", term(Class, Syntax), ~": ", term(Reason, syntax_of_call(MFA, Syntax))];
said({effect, MFA, Args}, Syntax, _) -> [~"calls ", call(MFA, Args, Syntax)];
said(timeout, _, _) -> ~"waits no longer: the time of its receive is over";
said(lost, _, _) -> ~"sends more, perhaps, which is not kept: it was killed, and it is not known whether before".

call({Module, Function, _} = MFA, Args, Syntax) ->
    witness_event:format_signature({Module, Function, Args}, syntax_of_call(MFA, Syntax)).

term(Term, Syntax) -> witness_event:format_term(Term, ?MAX_TERM_CHARS, Syntax).

-doc "The current step.".
-spec where(witness_step:session(), witness_text:look()) -> [unicode:chardata()].
where(S, Look) ->
    case witness_step:step(S) of
        none -> [[~"before the first of ", count(S)]];
        #{stack := Stack, id := Id} = Step -> [step(Step, S, Look) | frames(Stack, syntax(Id, S))]
    end.

count(S) -> witness_text:count(witness_step:size(S), ~"event", ~"events").

%% A line for each frame of a stack.
frames(Stack, Syntax) -> [[~"    in ", frame(Frame, Syntax)] || Frame <- Stack].

frame({Module, Function, Args, Location}, Syntax) when is_list(Args) -> frame({Module, Function, length(Args), Location}, Syntax);
frame({Module, Function, Arity, Location}, Syntax) ->
    MFA = {Module, Function, Arity},
    [witness_event:format_function(MFA, syntax_of_call(MFA, Syntax)),
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
                          | [[integer_to_binary(Id), term(Pid, syntax(Id, S)), witness_event:format_function(MFA, syntax(Id, S)),
                              integer_to_binary(length(witness_step:mailbox(Id, S))),
                              case Ended =:= 0 orelse Ended > At of
                                  true -> ~"lives";
                                  false -> [~"ended, ", integer_to_binary(Ended)]
                              end,
                              lists:join(~", ", [term(Name, syntax(Id, S)) || Name := Owner <- Names, Owner =:= Id])]
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
    Syntax = syntax(Id, S),
    witness_text:columns([[~"linked with", joined([term(Pid, Syntax) || Pid <- Links])],
                          [~"monitors", joined([[term(Item, Syntax), ~", by ", term(Ref, Syntax)] || {Ref, Item} <- Monitors])],
                          [~"names", joined([term(Name, Syntax) || Name <- Names])]]).

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
    end] | frames(Stack, syntax(Id, S))];
note({last, #{process := Id, until := Until, step := N, stack := Stack}}, S) ->
    [[~"the last that ", name(Id, S), ~" does before it ", until(Until), ~", at ", integer_to_binary(N)] | frames(Stack, syntax(Id, S))];
note({overwrites, #{change := Change, read := Read}}, S) ->
    #{id := Id, what := What} = witness_step:step(Change, S),
    [[~"overwrites what it does not know: it has read at ", integer_to_binary(Read), ~", and since then, at ",
      integer_to_binary(Change), ~", ", name(Id, S), ~" ", said(What, syntax(Id, S), S)]];
note({at_the_same_time, N}, _) ->
    [[~"perhaps: this call and ", integer_to_binary(N), ~" were under way at the same time"]];
note({race, #{from := From, sent := Sent, message := Message, taken := Taken}}, S) ->
    [[~"a race: ", term(Message, syntax(From, S)), ~" of ", name(From, S), ~", sent at ", integer_to_binary(Sent), case Taken of
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
                             #{titles => Modules, aliases => #{}, syntax => witness_event:syntax(maps:values(Modules))}, undefined,
                             Look);
sequence(mermaid, Messages, S, _) ->
    Parties = lists:uniq(lists:append([[From, To] || #{from := From, to := To} <- Messages])),
    [string:trim(Line, trailing, "\n")
     || Line <- [witness_cli_mermaid:heading()] ++ [witness_cli_mermaid:participant(Id, party(Id, S)) || Id <- Parties]
                ++ [witness_cli_mermaid:arrow(From, To, witness_event:format_term(Message, ?MAX_LABEL_CHARS, syntax(To, S)))
                    || #{from := From, to := To, message := Message} <- Messages]].

party(0, _) -> ~"";
party(Id, S) ->
    #{called := MFA} = witness_step:process(Id, S),
    witness_text:cut([name(Id, S), ~" ", witness_event:format_function(MFA, syntax(Id, S))], ?MAX_LABEL_CHARS).

-doc "A function in the form of the request.".
-spec function({binary(), binary(), arity() | any}) -> unicode:chardata().
function({<<"Elixir.", Module/binary>>, Function, Arity}) -> function({Module, Function, Arity});
function({<<First, _/binary>> = Module, Function, Arity}) ->
    Between = case First >= $A andalso First =< $Z of true -> $.; false -> $: end,
    [witness_text:clean(Module), Between, witness_text:clean(Function), [[$/, integer_to_binary(Arity)] || is_integer(Arity)]].

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
    %% Only of an anonymous function of Elixir does more than its arity follow: `anonymous fn/1 in Shop.run/2`.
    Name = witness_event:format_function(MFA, witness_event:syntax_of_function(MFA)),
    {Before, Behind} = case re:run(Name, "^(anonymous fn)/[0-9]+( in .*)$", [{capture, all_but_first, binary}]) of
        {match, [Anonymous, Place]} -> {Anonymous, Place};
        nomatch -> {hd(string:split(Name, "/", trailing)), ~""}
    end,
    [Before, $(, lists:join(~", ", [shortened(Arg) || Arg <- Args]), $), Behind,
     case Result of
         {returned, Value} -> [~" -> ", shortened(Value)];
         {raised, Class, Reason} -> [~" raises ", atom_to_binary(Class), ~": ", shortened(Reason)];
         none -> ~" does not return"
     end].

shortened(Text) -> witness_text:cut(Text, ?MAX_TERM_CHARS).

-doc "The answer of a process, by its number.".
-spec state(witness_step_live:answer(), pos_integer(), witness_step:session()) -> [unicode:chardata()].
state(Answer, Id, S) -> answer(Answer, syntax(Id, S)).

answer({ok, State}, Syntax) -> [witness_event:format_term(State, ?MAX_STATE_CHARS, Syntax)];
answer({in_receive, Stack, Backtrace}, Syntax) ->
    [~"it waits for a message, with these values" | values(Stack, Backtrace, Syntax)];
answer({elsewhere, Stack, Backtrace}, Syntax) ->
    [~"it is in the midst of something, so that it cannot be asked for its state; its values are" | values(Stack, Backtrace, Syntax)];
answer({running, Stack, Backtrace}, Syntax) ->
    [~"it runs, and has not come to a point where it can be asked; its values are" | values(Stack, Backtrace, Syntax)].

%% The VM's text for each frame: its function, and its values on the stack. The first frames are those of Witness.
values(Stack, Backtrace, Syntax) ->
    frames(Stack, Syntax) ++ [[~"      ", witness_text:cut(witness_text:clean(Line), ?MAX_TERM_CHARS)]
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
