%% The hidden variables that carry what a monitor knows of time (`witness_spec_time').
-define(NOW, '_@Now').
-define(DEADLINE, '_@Deadline').
-define(IS_TIME(Name), (Name =:= ?NOW orelse Name =:= ?DEADLINE)).
