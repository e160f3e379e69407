%% The key of the recorder.
-define(KEY, '$witness_record').

%% entries: the fetched ones; more: whether there may be others. at: how many the process has passed; limit: how many it may pass.
%% channels: for each sender the messages that were not taken, the earliest first, and behind them the latest first. recent: the latest
%% first, each as it was then. peer: the process that it sent to last, with its slot. plain: no process but the receiver needs its
%% messages. owners: the rows of its aliases to delete. heap: the limit that the program has set.
-record(process, {id :: pos_integer(),
                  pid :: pid(),
                  entries = [] :: [witness_log_recording:run()],
                  more = true :: boolean(),
                  at = 0 :: non_neg_integer(),
                  limit = infinity :: non_neg_integer() | infinity,
                  channels = #{} :: #{pos_integer() => {[{none | reference(), term()}], [{none | reference(), term()}]}},
                  peer = none :: none | {pid(), pos_integer(), witness_replay_proxies:slot()},
                  flow :: witness_replay_backpressure:flow(),
                  plain :: boolean(),
                  heap = #{size => 0, kill => true} :: witness_replay_heap:limit(),
                  aliases = #{} :: #{reference() => explicit | monitor | once},
                  owners = [] :: [term()],
                  recent = [] :: [witness_log_recording:run()]}).
