//! Options, converted to the spec of a run or of another command of a workload.

use assay_spec::{
    Concealed, ErrorSpec, FleetSpec, GeneratorSpec, IoSpec, LoadSpec, OutputSpec, RunSpec, ServerSpec, Sessions,
    TargetSpec, TelemetrySpec,
};

use crate::command_line::{
    CommonCommandOptions, ErrorOptions, FleetOptions, GeneratorOptions, IoOptions, LoadOptions, MeasuredCommandOptions,
    OlapOptions, OutputOptions, RecordOptions, RunOptions, RunServerOptions, Subcommand, TargetOptions,
};

impl Subcommand {
    /// What a command of a workload is asked to do, without the workload's options; `None`: it is not one.
    pub(super) fn spec(&self) -> Option<RunSpec> {
        Some(match self {
            Subcommand::Run(options) => options.spec(),
            Subcommand::Prepare(options) => options.spec("prepare"),
            Subcommand::Check(options) => options.spec("check"),
            Subcommand::Cleanup(options) => options.common.spec("cleanup"),
            Subcommand::Exec(options) => options.common.spec(&options.command),
            Subcommand::Olap(options) => options.spec(),
            _ => return None,
        })
    }
}

impl RunOptions {
    fn spec(&self) -> RunSpec {
        let RunOptions { load, output, .. } = self;
        RunSpec {
            target: self.target.spec(),
            server: self.server.spec(),
            load: load.spec(),
            errors: self.errors.spec(),
            generator: self.generator.spec(),
            telemetry: TelemetrySpec {
                level: output.telemetry,
                host_metrics: concealed(&output.host_metrics),
                poolers: concealed(&output.pooler),
            },
            tags: output.tags.iter().cloned().collect(),
            interval: output.interval,
            trials: load.trials,
            prepare: load.prepare,
            check: load.check,
            kill_check: load.kill_check.clone().map(Concealed::from),
            ..RunSpec::default()
        }
    }
}

impl MeasuredCommandOptions {
    fn spec(&self, task: &str) -> RunSpec {
        RunSpec {
            tags: self.record.tags.iter().cloned().collect(),
            telemetry: TelemetrySpec { level: self.record.telemetry, ..TelemetrySpec::default() },
            ..self.common.spec(task)
        }
    }
}

impl MeasuredCommandOptions {
    /// What becomes of the result.
    pub fn output(&self) -> OutputSpec {
        let RecordOptions { record, force, no_record, .. } = &self.record;
        OutputSpec {
            record: record.clone(),
            force: *force,
            no_record: *no_record,
            quiet: self.common.quiet,
            ..OutputSpec::default()
        }
    }
}

impl CommonCommandOptions {
    /// What becomes of the result: a command without a record prints what its workload says.
    pub fn output(&self) -> OutputSpec {
        OutputSpec { quiet: self.quiet, ..OutputSpec::default() }
    }
}

impl OutputOptions {
    /// What becomes of the result.
    pub fn output(&self) -> OutputSpec {
        OutputSpec {
            format: self.format,
            record: self.record.clone(),
            force: self.force,
            no_record: self.no_record,
            journal: self.journal.clone(),
            history: self.history.clone(),
            metrics_listen: self.metrics_listen,
            serve: self.serve,
            top: self.top,
            verbose: self.verbose,
            quiet: self.quiet,
        }
    }
}

impl FleetOptions {
    /// Who shares the work; `None`: this process works alone.
    pub fn spec(&self) -> Option<FleetSpec> {
        Some(FleetSpec {
            url: Concealed::from(self.url.as_deref()?),
            agents: self.agents,
            credentials: self.fleet_creds.clone(),
            ca: self.fleet_ca.clone(),
            db_from_agent_env: self.db_from_agent_env,
            lease: self.lease,
        })
    }
}

impl OlapOptions {
    /// The workload whose queries are executed, and where.
    fn spec(&self) -> RunSpec {
        RunSpec {
            task: "queries".to_owned(),
            target: TargetSpec {
                urls: concealed(&self.db),
                session_sql: concealed(&self.session_sql),
                ..TargetSpec::default()
            },
            generator: GeneratorSpec { seed: self.result.seed, ..GeneratorSpec::default() },
            tags: self.result.tags.iter().cloned().collect(),
            ..RunSpec::default()
        }
    }
}

impl IoOptions {
    /// What is asked for.
    pub fn spec(&self) -> IoSpec {
        IoSpec {
            folder: self.folder.clone(),
            keep: self.keep,
            size: self.size,
            files: self.files,
            readers: self.readers.clone(),
            writers: self.writers,
            write_depth: self.write_depth,
            loggers: self.loggers,
            block: self.block,
            log_block: self.log_block,
            log_size: self.log_size,
            direct: self.direct,
            dsync: self.dsync,
            time: self.time,
            seed: self.result.seed,
            tags: self.result.tags.iter().cloned().collect(),
        }
    }
}

impl CommonCommandOptions {
    fn spec(&self, task: &str) -> RunSpec {
        RunSpec {
            task: task.to_owned(),
            target: self.target.spec(),
            load: LoadSpec { sessions: self.sessions.map(Sessions::from), ..LoadSpec::default() },
            generator: self.generator.spec(),
            ..RunSpec::default()
        }
    }
}

impl TargetOptions {
    fn spec(&self) -> TargetSpec {
        TargetSpec {
            urls: concealed(&self.db),
            prepared: self.prepared,
            session_sql: concealed(&self.session_sql),
            connect_rate: self.connect_rate,
            connect_pending: self.connect_pending,
            network_timeout: self.network_timeout,
        }
    }
}

impl RunServerOptions {
    /// Settings may be given without a product: for the server of the run that is repeated.
    fn spec(&self) -> Option<ServerSpec> {
        let spec = ServerSpec {
            product: self.server.clone().unwrap_or_default(),
            binaries: self.binaries.clone(),
            settings: concealed(&self.set),
            config: self.server_config.clone(),
            cpus: self.server_cpus.clone(),
            memory: self.server_memory,
            fronts: self.front.clone(),
            front_settings: concealed(&self.front_set),
        };
        (spec != ServerSpec::default()).then_some(spec)
    }
}

impl LoadOptions {
    fn spec(&self) -> LoadSpec {
        LoadSpec {
            sessions: self.sessions.clone(),
            terminals: self.terminals.clone(),
            connections: self.connections,
            think_scale: self.think_scale,
            time: self.time,
            transactions: self.transactions,
            warmup: self.warmup,
            rate: self.rate.clone(),
            rate_file: self.rate_file.clone(),
            find_rate: self.find_rate.clone(),
            arrival: self.arrival,
            backlog_max: self.backlog_max,
            grace: self.grace,
        }
    }
}

impl ErrorOptions {
    fn spec(&self) -> ErrorSpec {
        ErrorSpec {
            retries: self.retries,
            ignore: self.ignore_errors.clone(),
            on_error: self.on_error,
            reconnect_time: self.reconnect_time,
        }
    }
}

impl GeneratorOptions {
    fn spec(&self) -> GeneratorSpec {
        GeneratorSpec {
            seed: self.seed,
            workers: self.workers,
            cpus: self.cpus.clone(),
            io: self.io,
            batch: self.batch,
            poll: self.poll,
            rand_type: self.rand_type.clone(),
            rand_spec_iter: self.rand_spec_iter,
            rand_spec_pct: self.rand_spec_pct,
            rand_spec_res: self.rand_spec_res,
            rand_pareto_h: self.rand_pareto_h,
            rand_zipfian_exp: self.rand_zipfian_exp,
        }
    }
}

fn concealed(texts: &[String]) -> Vec<Concealed> {
    texts.iter().map(|text| Concealed::from(text.as_str())).collect()
}
