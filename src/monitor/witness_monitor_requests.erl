-module(witness_monitor_requests).
-moduledoc """
The requests of replies: what a monitor knows of the calls that are open.

The reply to a call is `{Tag, Reply}`; the request was in the message `{'$gen_call', {Client, Tag}, Request}` that the server received.
For a monitor that asks for it (`c:witness_monitor:init/3`), `put_requests/2` gives each send one element more, in front of its time: the
request that the send answers.

A call is open from the event that receives it to the first send with its tag, whatever process sends it. Calls that are sent are not
open calls: their server may be outside of what the monitor reads, and then nothing would end them. There is a bound for open
calls. Without one, a server that never replies would make the monitor grow for ever, and a monitor that forgets a call would take its
reply for one without a request.
""".

-export([new/0, put_requests/2, plain/1]).
-export_type([requests/0, send/0]).

-doc "The requests of the open calls, by their tags.".
-type requests() :: #{Tag :: term() => Request :: term()}.

-doc "A send with the request that it answers; `none` if its message is no reply to an open call.".
-type send() :: {send, witness_event:proc(), witness_event:destination(), Message :: term(), none | {request, term()},
                 witness_event:ts()}.

-define(MAX_OPEN, 10_000).

-doc "No call is open.".
-spec new() -> requests().
new() -> #{}.

-doc """
The events with the requests of sends, and the calls that are open after them. With one open call more than the bound, the events
end before the one that opened it.
""".
-spec put_requests([witness_event:item()], requests()) ->
    {[witness_event:item() | send()], ok | too_many_requests, requests()}.
put_requests(Events, Open) -> put_requests(Events, Open, []).

put_requests([{send, P, To, {Tag, _} = Message, Ts} | Events], Open, Known) when is_map_key(Tag, Open) ->
    {Request, Left} = maps:take(Tag, Open),
    put_requests(Events, Left, [{send, P, To, Message, {request, Request}, Ts} | Known]);
put_requests([{send, P, To, Message, Ts} | Events], Open, Known) ->
    put_requests(Events, Open, [{send, P, To, Message, none, Ts} | Known]);
put_requests([{recv, _, _, {'$gen_call', {_, Tag}, Request}, _} = E | Events], Open, Known) ->
    case Open#{Tag => Request} of
        More when map_size(More) > ?MAX_OPEN -> {lists:reverse(Known), too_many_requests, Open};
        More -> put_requests(Events, More, [E | Known])
    end;
put_requests([E | Events], Open, Known) ->
    put_requests(Events, Open, [E | Known]);
put_requests([], Open, Known) ->
    {lists:reverse(Known), ok, Open}.

-doc "An outcome with the events as they were without requests; other terms are as before.".
-spec plain(Outcome) -> Outcome when Outcome :: term().
plain(#{event := Event, steps := Steps} = Outcome) ->
    Outcome#{event := without_request(Event), steps := [without_request(Step) || Step <- Steps]};
plain(Outcome) -> Outcome.

without_request(#{event := {send, P, To, Message, _, Ts}} = Step) -> Step#{event := {send, P, To, Message, Ts}};
without_request(Step) -> Step.
