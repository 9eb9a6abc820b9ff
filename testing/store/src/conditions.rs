//! The files of `s3s-fs`, with conditions on reads and removals, and a list of unfinished uploads.

use std::collections::BTreeMap;
use std::sync::Arc;

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput,
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, ETagCondition,
    GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput, ListMultipartUploadsInput,
    ListMultipartUploadsOutput, ListObjectsV2Input, ListObjectsV2Output, MultipartUpload,
    PutObjectInput, PutObjectOutput, Timestamp, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

use crate::State;

/// Files as objects.
pub struct Conditional {
    pub files: Arc<s3s_fs::FileSystem>,
    pub state: Arc<State>,
}

#[async_trait::async_trait]
impl S3 for Conditional {
    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        self.files.head_object(request).await
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        self.files.delete_objects(request).await
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        self.files.list_objects_v2(request).await
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        self.check_upload(&request.input.upload_id)?;
        self.files.upload_part(request).await
    }

    async fn put_object(
        &self,
        mut request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        if self.ignores_conditions() {
            request.input.if_match = None;
            request.input.if_none_match = None;
        }
        self.files.put_object(request).await
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let condition = request.input.if_match.clone();
        let answer = self.files.get_object(request).await?;
        self.check(condition.as_ref(), answer.output.e_tag.as_ref())?;
        Ok(answer)
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        if let Some(condition) = &request.input.if_match {
            let (bucket, key) = (request.input.bucket.clone(), request.input.key.clone());
            let head = HeadObjectInput::builder().bucket(bucket).key(key).build();
            let head = head.map_err(|_| s3_error!(InvalidRequest))?;
            let request = S3Request {
                input: head,
                method: request.method.clone(),
                uri: request.uri.clone(),
                headers: request.headers.clone(),
                extensions: Default::default(),
                credentials: request.credentials.clone(),
                region: request.region.clone(),
                service: request.service.clone(),
                trailing_headers: None,
            };
            let head = self.files.head_object(request).await?;
            self.check(Some(condition), head.output.e_tag.as_ref())?;
        }
        self.files.delete_object(request).await
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let key = request.input.key.clone();
        let answer = self.files.create_multipart_upload(request).await?;
        if let Some(id) = answer.output.upload_id.clone() {
            self.unfinished(|unfinished| unfinished.insert(id, key));
        }
        Ok(answer)
    }

    async fn complete_multipart_upload(
        &self,
        mut request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let id = request.input.upload_id.clone();
        self.check_upload(&id)?;
        if self.ignores_conditions() {
            request.input.if_none_match = None;
        }
        let answer = self.files.complete_multipart_upload(request).await?;
        self.unfinished(|unfinished| unfinished.remove(&id));
        Ok(answer)
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let id = request.input.upload_id.clone();
        self.check_upload(&id)?;
        let answer = self.files.abort_multipart_upload(request).await?;
        self.unfinished(|unfinished| unfinished.remove(&id));
        Ok(answer)
    }

    /// One upload an answer, so that a client has to ask for the rest.
    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = request.input;
        let (prefix, after) = (input.prefix.unwrap_or_default(), input.upload_id_marker);
        let all = self.unfinished(|unfinished| unfinished.clone());
        let mut left = all
            .into_iter()
            .filter(|(id, key)| key.starts_with(&prefix) && after.as_ref().is_none_or(|a| id > a));
        let first = left.next();
        let output = ListMultipartUploadsOutput {
            is_truncated: Some(left.next().is_some()),
            next_key_marker: first.as_ref().map(|(_, key)| key.clone()),
            next_upload_id_marker: first.as_ref().map(|(id, _)| id.clone()),
            uploads: first.map(|(id, key)| {
                vec![MultipartUpload {
                    upload_id: Some(id),
                    key: Some(key),
                    initiated: Some(Timestamp::from(std::time::SystemTime::now())),
                    ..Default::default()
                }]
            }),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }
}

impl Conditional {
    fn ignores_conditions(&self) -> bool {
        *self.state.ignores_conditions.lock().unwrap()
    }

    fn check(
        &self,
        condition: Option<&ETagCondition>,
        tag: Option<&s3s::dto::ETag>,
    ) -> S3Result<()> {
        let holds = match (condition, tag) {
            (Some(ETagCondition::ETag(wanted)), Some(tag)) => wanted.value() == tag.value(),
            _ => true,
        };
        if holds || self.ignores_conditions() { Ok(()) } else { Err(s3_error!(PreconditionFailed)) }
    }

    fn check_upload(&self, id: &str) -> S3Result<()> {
        match self.unfinished(|unfinished| unfinished.contains_key(id)) {
            true => Ok(()),
            false => Err(s3_error!(NoSuchUpload)),
        }
    }

    fn unfinished<R>(&self, with: impl FnOnce(&mut BTreeMap<String, String>) -> R) -> R {
        with(&mut self.state.unfinished.lock().unwrap())
    }
}
