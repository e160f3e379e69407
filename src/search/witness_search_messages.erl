-module(witness_search_messages).
-moduledoc """
Receives and sends of controlled processes. Mailboxes are part of the world (`m:witness_search_world`), so the order of messages is
that of the schedule.

*Outside.* A message to a process that is not controlled, such as the group leader, is sent for real, with the pids that the processes have
in this VM, and with aliases of this VM in the place of those of the program. Then the answer comes to that pid or alias, and is changed
back. *Invariant:* a process that may get an answer waits for it before it parks at its next
`receive`, so what comes from outside comes at the same place of each run with this schedule.
""".

-export([take/3, wait/2, send/2, reply/1]).

%% Milliseconds that an answer from outside may take.
-define(OUTSIDE_MS, 5_000).
%% Processes that decide what the VM is. What they are asked for changes it for all later runs.
-define(RULERS, [init, kernel_sup]).

-doc "A `receive` of woven code, as `m:witness_weave_runtime` defines it.".
-spec take(fun((tuple(), term()) -> boolean()) | none, tuple(), term()) -> [term()] | timeout.
take(Match, Bound, Time) ->
    case witness_search_process:current() of
        none -> receive_outside(Match, Bound, check_timeout(Time));
        C -> take_controlled(match_fun(Match, Bound), check_timeout(Time), C)
    end.

match_fun(none, _) -> fun(_) -> false end;
match_fun(Match, Bound) -> fun(Message) -> Match(Bound, Message) end.

check_timeout(infinity) -> infinity;
check_timeout(Time) when is_integer(Time), Time >= 0, Time =< 16#ffffffff -> Time;
check_timeout(_) -> erlang:error(timeout_value).

receive_outside(none, _, Time) -> receive after Time -> timeout end;
receive_outside(Match, Bound, Time) ->
    prim_eval:'receive'(fun(Message) -> case Match(Bound, Message) of true -> [Message]; false -> nomatch end end, Time).

take_controlled(Match, Time, C) ->
    ok = arrivals(Match, C),
    case witness_search_process:perform({'receive', #{match => Match, time => Time, take => true}}, C) of
        {message, {From, Via, Content}} ->
            ok = witness_search_process:log(entry(From, Via, Content), C),
            [Content];
        timeout ->
            ok = witness_search_process:log(timeout, C),
            timeout
    end.

arrivals(Match, C) ->
    case witness_search_process:arrivals(?OUTSIDE_MS) of
        [] -> ok;
        Messages ->
            Arrived = [arrived(witness_search_process:query({arrives, Via, Content}, C), Content, Match)
                     || Message <- Messages, {Via, Content} <- [witness_search_outside:via(Message)]],
            %% More may come until the answer is there. One to an alias that is not active any more never is.
            case lists:member(true, Arrived) of
                true -> ok;
                false ->
                    ok = witness_search_process:expect(message),
                    arrivals(Match, C)
            end
    end.

arrived(ok, Content, Match) -> Match(Content);
arrived(inactive, _, _) -> true.

%% A recording has these messages with their contents, whichever process has sent them.
entry(outside, _, Content) -> {content, Content};
entry(_, _, {'EXIT', _, _} = Content) -> {content, Content};
entry(_, _, {'DOWN', _, _, _, _} = Content) -> {content, Content};
entry(_, _, {spawn_reply, _, _, _} = Content) -> {content, Content};
entry(_, _, {_, Request, ok, Child} = Content) when is_reference(Request), is_pid(Child) -> {content, Content};
entry(From, _, _) -> {from, From}.

-doc "A `receive` by a function, as `prim_eval` has it.".
-spec wait(fun((term()) -> term()), term()) -> term().
wait(Match, Time) ->
    case witness_search_process:current() of
        none -> prim_eval:'receive'(Match, Time);
        C ->
            case take_controlled(fun(Message) -> Match(Message) =/= nomatch end, check_timeout(Time), C) of
                [Message] -> Match(Message);
                timeout -> timeout
            end
    end.

-doc "A send by this function of `erlang`. The result is that of the function.".
-spec send(atom(), [term()]) -> term().
send(Function, [To, Message | Options] = Args) ->
    case witness_search_process:current() of
        none -> erlang:apply(erlang, Function, Args);
        C ->
            witness_record_runtime:are_options(Options) orelse witness_search_results:raise(error, badarg, erlang, Function, Args),
            ok = deliver(To, Message, Function, Args, C),
            case {Function, Options} of
                {send_nosuspend, _} -> true;
                {send, [_]} -> ok;
                {_, []} -> Message
            end
    end.

deliver(To, Message, Function, Args, C) ->
    sent(witness_search_process:perform({send, To, Message, length(Args)}, C), To, Message, Function, Args, C).

sent({sent, Id}, To, _, _, _, C) -> named(Id, To, C);
sent({ended, _}, _, _, _, _, _) -> ok;
sent(inactive, _, _, _, _, _) -> ok;
sent({outside, Real}, To, Message, _, _, C) ->
    ok = named(0, To, C),
    send_outside(Real, Message, C);
%% A name on this node.
sent(noname, To, Message, Function, Args, C) ->
    Name = case To of {Local, _} -> Local; _ -> To end,
    case witness_search_applications:find(Name, C) of
        here -> deliver(To, Message, Function, Args, C);
        none when is_tuple(To) -> named(0, To, C);
        none -> fail(Function, Args, C);
        Real ->
            ok = named(0, To, C),
            send_outside(Real, Message, C)
    end;
sent(badarg, _, _, Function, Args, C) -> fail(Function, Args, C).

-spec fail(atom(), [term()], witness_search_process:control()) -> no_return().
fail(Function, Args, C) ->
    ok = witness_search_process:log({raise, witness_record_calls:number(erlang, Function, length(Args)), {error, badarg}}, C),
    witness_search_results:raise(error, badarg, erlang, Function, Args).

named(Id, Name, C) when is_atom(Name) -> witness_search_process:log({named, Id}, C);
named(Id, {Name, Node}, C) when is_atom(Name), Node =:= node() -> witness_search_process:log({named, Id}, C);
named(_, _, _) -> ok.

%% An answer is expected if the message says where to. The group leader is the search's own, and always answers the same.
send_outside(To, {io_request, From, As, Request} = Message, C) ->
    case witness_search_process:pid(C) =/= From andalso is_pid(From) andalso whereis(user) =:= To of
        %% The master of an application passes on what its processes print, and these wait for the answer.
        true -> witness_search_process:query({tell, From, {io_reply, As, reply(Request)}}, C);
        false -> send_real(To, Message, C)
    end;
send_outside(To, Message, C) -> send_real(To, Message, C).

send_real(To, Message, C) ->
    Name = name(To),
    _ = [witness_search_process:refuse({erlang, send, 2}, C) || lists:member(Name, ?RULERS)],
    _ = [witness_search_process:refuse(Function, C) || Name =:= code_server, Function <- replaces(Message)],
    {Real, Answers} = witness_search_outside:real(Message, C),
    _ = [ok = witness_search_process:fault(outside, Name, C)
         || To =/= witness_search_process:query(leader, C), Name =/= standard_error, not is_reading(Message)],
    _ = [ok = witness_search_process:expect(answer) || Answers],
    _ = erlang:send(To, Real),
    ok.

-doc "The answer to a request for output or input: there is none to read, and what is written is not shown.".
-spec reply(Request :: term()) -> term().
reply(Request) when element(1, Request) =:= put_chars; element(1, Request) =:= setopts -> ok;
reply({requests, Requests}) -> reply(lists:last([{setopts, []} | Requests]));
reply(Request) when element(1, Request) =:= get_geometry -> {error, enotsup};
reply(getopts) -> [];
reply(_) -> eof.

%% What is loaded in the place of woven code is not controlled, in this run and all later ones.
replaces({code_call, _, {load_module, _, Module, _, _, _}}) -> [{code, load_binary, 3} || is_woven(Module)];
replaces({code_call, _, {Function, Module}}) when Function =:= delete; Function =:= purge; Function =:= soft_purge ->
    [{code, Function, 1} || is_woven(Module)];
replaces(_) -> [].

is_woven(Module) ->
    erlang:module_loaded(Module) andalso lists:keymember(witness_weave, 1, erlang:get_module_info(Module, attributes)).

%% Where the code server has code is the same in each run.
is_reading({code_call, _, {where_is_file, _}}) -> true;
is_reading({code_call, _, {dir, _}}) -> true;
is_reading({code_call, _, get_path}) -> true;
is_reading(_) -> false.

name(Pid) when is_pid(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> process
    end;
name(Port) when is_port(Port) -> port;
name(Ref) when is_reference(Ref) -> alias;
name(To) -> To.
