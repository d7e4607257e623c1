//! The MCP server: the goal of the calling session, as tools for the agent. Standard output belongs to the
//! protocol. Whatever a tool has to refuse is an ordinary result with `isError`, which the model can read; a
//! protocol error would only tell it that something broke.

mod args;
mod caller;
mod desk;
mod recall;
mod tools;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::stdio;
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::json;
use steadfast_core::host::adapters;
use steadfast_core::paths::Paths;

use desk::{Desk, Failure};

const INSTRUCTIONS: &str = "Steadfast keeps this session's goal: an objective that is worked on turn after turn until \
    it is met, a limit is reached or the user stops it. Create a goal only when the user asks for one, and complete \
    it only when every part of the objective is proven done.";

/// Serves until standard input closes. A verification that still runs then is waited for, so that its outcome
/// is kept.
pub(crate) fn serve(paths: &Paths) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Server { desk: Arc::new(Desk::new(paths)) };
    runtime.block_on(async {
        match server.serve(stdio()).await {
            Ok(running) => {
                running.waiting().await?;
                Ok(())
            }
            // A client that went away before it said hello is no failure of ours.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    })
}

struct Server {
    desk: Arc<Desk>,
}

impl Server {
    /// Runs a tool beside the protocol's own thread, which goes on answering pings.
    async fn call(&self, name: &str, arguments: JsonObject, meta: &JsonObject) -> Result<CallToolResult, ErrorData> {
        let Some(tool) = tools::find(name) else {
            let message = format!("unknown tool `{name}`; there are {}", tools::names());
            return Err(ErrorData::invalid_params(message, None));
        };
        let desk = Arc::clone(&self.desk);
        let origin = adapters().find_map(|adapter| Some((adapter.host, (adapter.tool_call_origin)(meta)?)));
        let work = move || (tool.call)(&desk, &arguments, &origin);
        Ok(match tokio::task::spawn_blocking(work).await {
            Ok(Ok(value)) => {
                let words = tool.in_words.map(|in_words| in_words(&value));
                let mut result = CallToolResult::structured(value);
                if let Some(words) = words {
                    result.content = vec![ContentBlock::text(words)];
                }
                result
            }
            Ok(Err(failure)) => refusal(&failure),
            Err(_) => refusal(&Failure::said("the tool failed inside steadfast", "run `steadfast doctor`")),
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("steadfast", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Every client asks for the tools once, when the session's first hook has run.
        self.desk.hold();
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        Ok(self.call(&request.name, arguments, &context.meta).await?.into())
    }

    /// A call whose arguments are not even an object arrives here, since it does not fit the SDK's type.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = request.params.as_ref().and_then(|params| params["name"].as_str());
        match name.filter(|_| request.method == "tools/call").and_then(tools::find) {
            Some(_) => Ok(CustomResult::new(json!({
                "content": [{"type": "text", "text": args::not_an_object().to_string()}],
                "isError": true,
            }))),
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
    }
}

fn refusal(failure: &Failure) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(failure.to_string())])
}
