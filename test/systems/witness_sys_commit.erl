-module(witness_sys_commit).
-moduledoc """
Two-phase commit: a coordinator asks its participants, which vote at the same time, and tells all of them the outcome.
The participants in `Against` vote `abort`. An `eager` coordinator commits when most are in favour.
""".
-export([main/3, coordinator/4, participant/2]).

-spec main(pos_integer(), [pos_integer()], careful | eager) -> ok.
main(N, Against, How) ->
    Self = self(),
    Coordinators = [spawn(?MODULE, coordinator, [N, Against, How, Self]) || _ <- [1, 2]],
    _ = [receive {finished, Pid} -> ok end || Pid <- Coordinators],
    ok.

-spec coordinator(pos_integer(), [pos_integer()], careful | eager, pid()) -> {finished, pid()}.
coordinator(N, Against, How, Root) ->
    Pids = [spawn(?MODULE, participant, [self(), lists:member(I, Against)]) || I <- lists:seq(1, N)],
    _ = [Pid ! prepare || Pid <- Pids],
    Votes = [receive {vote, Pid, Vote} -> Vote end || Pid <- Pids],
    Outcome = outcome(How, length([V || V <- Votes, V =:= abort]), N),
    _ = [Pid ! Outcome || Pid <- Pids],
    _ = [receive {ack, Pid, Outcome} -> ok end || Pid <- Pids],
    Root ! {finished, self()}.

outcome(_, 0, _) -> commit;
outcome(eager, Aborts, N) when 2 * Aborts < N -> commit;
outcome(_, _, _) -> abort.

-spec participant(pid(), boolean()) -> {ack, pid(), commit | abort}.
participant(Coordinator, Against) ->
    receive prepare -> ok end,
    Coordinator ! {vote, self(), if Against -> abort; true -> commit end},
    receive Outcome -> Coordinator ! {ack, self(), Outcome} end.
