%% That of the recorder.
-define(KEY, '$witness_record').

%% entries: those that were fetched; more: whether there may be others. at: how many it has passed; limit: how many it may. channels: messages that
%% came from a sender and were not taken, the earliest first, and behind them the latest first. recent: the latest first, each as it stood then.
%% peer: to whom it has sent last, and who stands for that. plain: nobody wants to know of messages but who takes them. owners: what is to be
%% forgotten of its aliases. heap: the limit that the program has set.
-record(process, {id :: pos_integer(),
                  pid :: pid(),
                  entries = [] :: [witness_log_recording:run()],
                  more = true :: boolean(),
                  at = 0 :: non_neg_integer(),
                  limit = infinity :: non_neg_integer() | infinity,
                  channels = #{} :: #{pos_integer() => {[{none | reference(), term()}], [{none | reference(), term()}]}},
                  peer = none :: none | {pid(), pos_integer(), witness_replay_slots:slot()},
                  flow :: witness_replay_flow:flow(),
                  plain :: boolean(),
                  heap = #{size => 0, kill => true} :: witness_replay_heap:limit(),
                  aliases = #{} :: #{reference() => explicit | monitor | once},
                  owners = [] :: [term()],
                  recent = [] :: [witness_log_recording:run()]}).
