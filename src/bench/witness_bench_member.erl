-module(witness_bench_member).
-moduledoc """
The parts of a model besides its master (`m:witness_bench_master`): how members are created, and their messages.

Messages are those of BenchCRV (RIARC text, C.3), each with the triple `{Id, Number, Requests}` that makes it unique.
Requests and responses also have the stamp by which their time is measured, and a payload:

| Message | From | To |
|---|---|---|
| `{Pid, {chunk, {Id, Number, Requests}, Stamp, Payload}}` | requester | responder |
| `{Pid, {ack, {Id, Number, Requests}, Stamp, Payload}}` | responder | requester: a response |
| `{Pid, {'end', {Id, Requests, Requests}, Stamp, Payload}}` | responder | requester: the last response |
| `{Pid, {term, {Id, Requests, Requests}}}` | the master | a worker, which then ends |

A member without a monitor (`share` of a model) starts in `plain` and not in `start`.
""".

-export([begin_at/1, failures/1, crash_at/3, is_lost/3]).

-export_type([setup/0, failures/0]).

-doc """
Data that all members need: rounds of work for each request, the failures, their node, and
further numbers of the model.
""".
-type setup() :: #{rounds := non_neg_integer(), failures := failures(), payload := binary(), node := node(),
                   share := number(), seed := non_neg_integer(), atom() => term()}.

-doc "The seed, the probability that a worker crashes, and that a message is lost.".
-type failures() :: none | {Seed :: non_neg_integer(), Crash :: number(), Loss :: number()}.

-doc """
Creates what the master's plan has for one point in time: a member, or several that belong together. Returns the process to
which the master sends the requests, their number (0, if members of this kind get none), and how many times
`end` will come.
""".
-callback create(Id :: pos_integer(), Requests :: pos_integer(), setup(), witness_bench_response:measures()) ->
    {To :: pid() | none, Requests :: non_neg_integer(), Ends :: pos_integer()}.

-doc """
The number of created processes, with those that they spawn themselves. The same number of them ends at each `end`.
""".
-callback size(witness_bench_model:model()) -> pos_integer().

-doc """
The number of messages among the processes that were created together, without those that they measure themselves.
They are counted as the batch ends.
""".
-callback inner(Requests :: pos_integer(), setup()) -> non_neg_integer().

-doc "Whether the master answers `end` with `term`.".
-callback terms() -> boolean().

-doc "The functions that members are spawned with, with or without a monitor.".
-callback functions() -> [{start | plain, mfa()}].

-doc "The function in which this member starts: a share of the members is monitored, always the same ones.".
-spec begin_at({Id :: term(), setup()}) -> start | plain.
begin_at({_, #{share := Share}}) when Share == 1 -> start;
begin_at({Id, #{share := Share, seed := Seed}}) ->
    case witness_bench_random:chance({share, Id}, Seed, Share) of
        true -> start;
        false -> plain
    end.

-doc "The failures of a model with a fixed seed.".
-spec failures(witness_bench_model:model()) -> failures().
failures(#{crash := Crash, loss := Loss}) when Crash == 0, Loss == 0 -> none;
failures(#{crash := Crash, loss := Loss, seed := Seed}) -> {Seed, Crash, Loss}.

-doc "The request at which a worker crashes, if it does. It depends only on the seed.".
-spec crash_at(Id :: pos_integer(), Requests :: pos_integer(), failures()) -> pos_integer() | infinity.
crash_at(_, _, none) -> infinity;
crash_at(Id, Requests, {Seed, Crash, _}) ->
    case witness_bench_random:chance({crash, Id}, Seed, Crash) of
        true -> 1 + erlang:phash2({Seed, crash_at, Id}, Requests);
        false -> infinity
    end.

-doc """
Whether a message is lost. The last request of a batch and its response are never lost, as if their sender repeated them
until they arrive: otherwise the end of the batch would be unknown.
""".
-spec is_lost(chunk | ack, {Id :: pos_integer(), Number :: pos_integer(), Requests :: pos_integer()}, failures()) ->
    boolean().
is_lost(_, _, none) -> false;
is_lost(_, {_, Requests, Requests}, _) -> false;
is_lost(Kind, Triple, {Seed, _, Loss}) -> witness_bench_random:chance({Kind, Triple}, Seed, Loss).
