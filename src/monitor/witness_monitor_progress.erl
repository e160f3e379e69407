-module(witness_monitor_progress).
-moduledoc """
Up to which time a consumer of a partition has read all events, for deadlines (docs/internals/native.md). Pure, except for `ask/2`.

The consumer reads the clock and asks the session to say when everything that has happened is in the partition. Then it takes what is
there. What it took before may still be in its mailbox, behind the answer. So the time is reached when all batches that were taken by then
have been read. Batches that come meanwhile do not delay it.
""".

-export([new/0, is_asked/1, ask/2, delivered/2, took/2, read/1, reached/1]).
-export_type([progress/0]).

%% The batches that were taken and not read; and the time that was asked for: from the session, to be taken, behind so many batches.
-opaque progress() :: {Unread :: integer(), no | {delivered, reference(), integer()} | {take, integer()}
                                                | {behind, integer(), integer()}}.

-doc "Nothing was taken.".
-spec new() -> progress().
new() -> {0, no}.

-doc "Whether a time was asked for and is not reached yet.".
-spec is_asked(progress()) -> boolean().
is_asked({_, Asked}) -> Asked =/= no.

-doc """
Asks for the present time. `Deliver` asks the session for the message `{trace_delivered, all, Ref}`. If the session has ended, nothing is
asked: the partition ends, too.
""".
-spec ask(Deliver :: fun(() -> reference()), progress()) -> progress().
ask(Deliver, {Unread, no} = Progress) ->
    %% Events with an earlier time have begun to be reported.
    Now = erlang:monotonic_time(nanosecond),
    try {Unread, {delivered, Deliver(), Now}}
    catch error:badarg -> Progress
    end.

-doc "The session has answered: the consumer takes next. `stale`: the answer is to another question.".
-spec delivered(reference(), progress()) -> {ok, progress()} | stale.
delivered(Ref, {Unread, {delivered, Ref, Time}}) -> {ok, {Unread, {take, Time}}};
delivered(_, _) -> stale.

-doc "The consumer has taken a batch, which comes as a message, or there was none.".
-spec took(ok | empty, progress()) -> progress().
took(ok, {Unread, Asked}) -> took(empty, {Unread + 1, Asked});
took(empty, {Unread, {take, Time}}) -> {Unread, {behind, Unread, Time}};
took(empty, Progress) -> Progress.

-doc "The consumer has read a batch.".
-spec read(progress()) -> progress().
read({Unread, {behind, Batches, Time}}) -> {Unread - 1, {behind, Batches - 1, Time}};
read({Unread, Asked}) -> {Unread - 1, Asked}.

-doc "The time that is reached now.".
-spec reached(progress()) -> {Time :: integer(), progress()} | no.
reached({Unread, {behind, 0, Time}}) -> {Time, {Unread, no}};
reached(_) -> no.
