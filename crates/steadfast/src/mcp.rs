//! The MCP server: tools for the agent that act on the goal of the calling session. Stdout has only protocol messages. A
//! tool that refuses returns a result with `isError`, because a model does not see the text of protocol errors.

mod caller;
mod calls;
pub(crate) mod client;
mod evaluator;
mod recall;
mod store_handle;
mod tools;

use std::path::Path;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError, serve_directly};
use rmcp::transport::stdio;
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::json;
use steadfast_app::tool_args;
use steadfast_engine::crash;
use steadfast_hosts::adapters;
use steadfast_model::redact::redact;
use steadfast_system::paths::Paths;

use crate::restart;
use calls::CallUnderWay;
use store_handle::{StoreHandle, ToolError};

/// The tools, for the reference.
#[cfg(test)]
pub(crate) fn tools() -> Vec<rmcp::model::Tool> {
    tools::list()
}

/// Serves until stdin closes. Then waits for a running verification, so that its result is stored. After a restart the
/// client is initialized already, and `unanswered` has the ids of calls that the process before it had begun; calls that
/// it had read and not begun are lost.
pub(crate) fn serve(paths: &Paths, db_flag: Option<&Path>, restarts: u32, unanswered: &str) -> anyhow::Result<()> {
    restart::enable(restarts, |command| {
        // Commands of verifications: the server that could end them at their time limit is gone.
        steadfast_engine::kill_descendants();
        command.args(["--unanswered", &calls::hand_over()]);
    });
    calls::answer(unanswered);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = StoreHandle::new(paths, db_flag);
    // Look while the client still holds its end of stdin.
    let _ = handle.client();
    let server = Server { handle: Arc::new(handle) };
    runtime.block_on(async {
        if restarts > 0 {
            serve_directly::<RoleServer, _, _, _, _>(server, stdio(), None).waiting().await?;
            return Ok(());
        }
        match server.serve(stdio()).await {
            Ok(running) => {
                running.waiting().await?;
                Ok(())
            }
            // A client that disconnects before it initializes is not an error.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    })
}

struct Server {
    handle: Arc<StoreHandle>,
}

impl ServerHandler for Server {
    /// There are no instructions: the descriptions of the tools say it all, and a client would add both to every request.
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("steadfast", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Every client lists the tools once, after the session's first hook. The store may have to be migrated.
        let handle = Arc::clone(&self.handle);
        tokio::task::spawn_blocking(move || handle.open_early());
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    /// Runs a tool on another thread, so that the protocol's thread keeps answering pings.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&request.name) else {
            let message = format!("unknown tool `{}`; the tools are {}", request.name, tools::names());
            return Err(ErrorData::invalid_params(message, None));
        };
        let handle = Arc::clone(&self.handle);
        let arguments = request.arguments.unwrap_or_default();
        let call = adapters().find_map(|adapter| Some((adapter.host, (adapter.tool_call_origin)(&context.meta)?)));
        let host = call.as_ref().map(|(host, _)| *host).unwrap_or_default();
        let work = move || {
            crash::panic_once("mcp.tool");
            (tool.call)(&handle, &arguments, &call)
        };
        let _call = CallUnderWay::begin(context.id.clone());
        let done = tokio::task::spawn_blocking(work).await;
        let result = match done.unwrap_or_else(|_| Err(calls::internal_error())) {
            Ok(value) => {
                let text = tool.as_text.map(|as_text| as_text(&value));
                let mut result = CallToolResult::structured(value);
                if let Some(text) = text {
                    result.content = vec![ContentBlock::text(text)];
                }
                result
            }
            // A model cannot type a command, but it can name it to the user.
            Err(error) => CallToolResult::error(vec![ContentBlock::text(host.spell(&redact(&error.to_string())))]),
        };
        Ok(result.into())
    }

    /// Calls whose arguments are not an object arrive here, because the SDK's type does not accept them.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = request.params.as_ref().and_then(|params| params["name"].as_str());
        match name.filter(|_| request.method == "tools/call").and_then(tools::find) {
            Some(_) => Ok(CustomResult::new(json!({
                "content": [{"type": "text", "text": ToolError::from(tool_args::not_an_object()).to_string()}],
                "isError": true,
            }))),
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
    }
}
